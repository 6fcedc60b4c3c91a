package packet

import (
	"fmt"
	"syscall"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// attachment is the half that all AF_PACKET links share: every method of Link but Poll.
type attachment = afpacket.Attachment

// Link is a transport.Link, Joiner, Namer and Sharer on one network interface.
// Its method Promiscuous returns why it has made the NIC promiscuous, or "".
type Link struct {
	attachment
	socket socket
	in     inbox // of the polling goroutine
}

var (
	_ transport.Link   = (*Link)(nil)
	_ transport.Joiner = (*Link)(nil)
	_ transport.Namer  = (*Link)(nil)
	_ transport.Sharer = (*Link)(nil)
)

// Open attaches to the network interface called name.
// Errors: transport.ErrNoInterface, ErrInterfaceDown, ErrPermission (without CAP_NET_RAW),
// ErrNotSupported.
func Open(name string, cfg Config) (*Link, error) {
	l := new(Link)
	if err := l.open(name, cfg); err != nil {
		return nil, fmt.Errorf("packet %s: open: %w", name, err)
	}
	return l, nil
}

func (l *Link) open(name string, cfg Config) error {
	if cfg.ReceiveBuffer == 0 {
		cfg.ReceiveBuffer = DefaultReceiveBuffer
	}
	if cfg.ReceiveBuffer < 0 {
		return fmt.Errorf("Config.ReceiveBuffer %d: negative", cfg.ReceiveBuffer)
	}
	err := afpacket.Find(&l.attachment, "packet", name, afpacket.Config{
		EtherType: cfg.EtherType, Promiscuous: cfg.Promiscuous, NoVLANs: cfg.NoVLANs, BypassQdisc: cfg.BypassQdisc,
	})
	if err != nil {
		return err
	}
	if err := l.socket.open(&l.attachment, cfg.ReceiveBuffer); err != nil {
		return err
	}
	l.in.init(l.MTU())
	l.in.poller = afpacket.NewPoller(l.socket.raw, l.socket.conn.SetReadDeadline, l.in.look)
	if err := afpacket.Attach(&l.attachment, &l.socket, l.in.poller); err != nil {
		_ = l.socket.Close() // the first error is the one to report
		return err
	}
	return nil
}

// Close implements transport.Link.
func (l *Link) Close() error { return l.attachment.Close() }

// socket is the receiving socket: a packet.Conn, watched by the runtime's poller.
type socket struct {
	conn *packet.Conn
	raw  syscall.RawConn
}

// open makes the socket, which receives nothing until Attach binds it: packet.Listen is given
// protocol 0, as a bound socket would get other programs' frames before its options are set.
func (s *socket) open(a *attachment, receiveBuffer int) error {
	filter, err := afpacket.Filter(a)
	if err != nil {
		return err
	}
	s.conn, err = packet.Listen(afpacket.Interface(a), packet.Raw, 0, &packet.Config{Filter: filter})
	if err != nil {
		return afpacket.Explain(err)
	}
	if s.raw, err = s.conn.SyscallConn(); err == nil {
		err = s.setOptions(receiveBuffer)
	}
	if err != nil {
		_ = s.conn.Close() // the first error is the one to report
		return fmt.Errorf("set options: %w", afpacket.Explain(err))
	}
	return nil
}

func (s *socket) setOptions(receiveBuffer int) error {
	return s.Control(func(fd int) error {
		// Past net.core.rmem_max with CAP_NET_ADMIN, else up to it.
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
		}
		return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1)
	})
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
