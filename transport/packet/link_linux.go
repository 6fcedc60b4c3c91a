package packet

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
)

// attachment is the half that all AF_PACKET links share: every method of Link but Poll and
// ReceivedStamp.
type attachment = afpacket.Attachment

// Link is a transport.Link, Joiner, Namer, Sharer, Attached, TypeFilter, Trainer and Stamper on
// one network interface. Its method Promiscuous returns why it has made the NIC promiscuous, or
// "".
type Link struct {
	attachment
	socket socket
	stamps []transport.Stamp // of the last Poll's frames, if they are stamped
}

var (
	_ transport.Link       = (*Link)(nil)
	_ transport.Joiner     = (*Link)(nil)
	_ transport.Namer      = (*Link)(nil)
	_ transport.Sharer     = (*Link)(nil)
	_ transport.Attached   = (*Link)(nil)
	_ transport.TypeFilter = (*Link)(nil)
	_ transport.Trainer    = (*Link)(nil)
	_ transport.Stamper    = (*Link)(nil)
)

// Open attaches to the network interface called name. Without CAP_NET_RAW it asks the service of
// package grant for sockets, where there is one. With Config.Grant the interface is the grant's,
// and name is not used.
// Errors: transport.ErrNoInterface, ErrInterfaceDown, ErrPermission, ErrNotSupported.
func Open(name string, cfg Config) (*Link, error) {
	return grant.Link(cfg.Grant, grant.Request{Interface: name, EtherType: cfg.EtherType}, cfg.open)
}

func (c Config) open(name string, granted *afpacket.Granted) (*Link, error) {
	l := &Link{socket: socket{buffer: cmp.Or(c.ReceiveBuffer, DefaultReceiveBuffer), granted: granted}}
	l.socket.in.trains = afpacket.TakesTrains(c.NoTrains, granted, c.EtherType)
	err := afpacket.Open(&l.attachment, "packet", name, afpacket.Config{
		EtherType: c.EtherType, Promiscuous: c.Promiscuous, NoVLANs: c.NoVLANs, BypassQdisc: c.BypassQdisc,
		Trains: l.socket.in.trains, Granted: granted,
	}, &l.socket)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Close implements transport.Link.
func (l *Link) Close() error { return l.attachment.Close() }

// socket is the receiving socket, watched by the runtime's poller.
type socket struct {
	buffer  int // Config.ReceiveBuffer
	granted *afpacket.Granted
	conn    conn
	raw     syscall.RawConn
	in      inbox // of the polling goroutine
}

// conn is a packet.Conn, or the file of a granted socket.
type conn interface {
	SyscallConn() (syscall.RawConn, error)
	SetReadDeadline(t time.Time) error
	Close() error
}

// listen makes the socket, or takes the granted one. packet.Listen is given protocol 0, as a socket
// that it binds to another one would get other programs' frames before its filter and options are
// set.
func (s *socket) listen(ifi *afpacket.Interface) (conn, error) {
	if s.granted == nil {
		return packet.Listen(&net.Interface{Index: ifi.Index}, packet.Raw, 0, nil)
	}
	fd, err := s.granted.TakeReceive()
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), ifi.Name), nil // it does not block, so the runtime watches it
}

// Open implements afpacket.Socket.
func (s *socket) Open(ifi *afpacket.Interface) (_ *netpoll.Poller, err error) {
	if s.buffer < 0 {
		return nil, fmt.Errorf("Config.ReceiveBuffer %d: negative", s.buffer)
	}
	if s.conn, err = s.listen(ifi); err != nil {
		return nil, afpacket.Explain("make the socket", err)
	}
	if s.raw, err = s.conn.SyscallConn(); err == nil {
		err = s.Control(s.setOptions)
	}
	if err != nil {
		_ = s.conn.Close() // the first error is the one to report
		return nil, afpacket.Explain("set options", err)
	}
	s.in.init(ifi.MTU)
	s.in.poller = netpoll.NewPoller(s.raw, s.conn.SetReadDeadline, s.in.look)
	return s.in.poller, nil
}

func (s *socket) setOptions(fd int) error {
	// Past net.core.rmem_max with CAP_NET_ADMIN, else up to it.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, s.buffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, s.buffer)
	}
	if s.in.trains {
		if err := afpacket.ReceiveTrains(fd, s.buffer); err != nil {
			return err
		}
	}
	return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1)
}

// Control implements afpacket.Socket.
func (s *socket) Control(f func(fd int) error) error {
	var err error
	if s.raw.Control(func(fd uintptr) { err = f(int(fd)) }) != nil {
		return transport.ErrClosed
	}
	return err
}

// Close implements afpacket.Socket.
func (s *socket) Close() error { return s.conn.Close() }
