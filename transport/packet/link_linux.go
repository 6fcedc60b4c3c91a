package packet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// Link is a transport.Link, Joiner, Namer and Sharer on one network interface.
type Link struct {
	name      string
	mac       transport.MAC
	mtu       int
	etherType transport.EtherType
	namespace string // that it was opened in
	promisc   string // why the NIC is promiscuous; empty if it is not
	conn      *packet.Conn
	raw       syscall.RawConn
	presence  afpacket.Presence
	groups    *afpacket.Groups
	sleeper   *afpacket.Sleeper
	closed    atomic.Bool
	close     sync.Once
	closeErr  error

	in  inbox // the poller's
	out afpacket.Outbox

	dropMu  sync.Mutex // guards dropped: the kernel's own count starts anew whenever it is read
	dropped uint64
}

var (
	_ transport.Link   = (*Link)(nil)
	_ transport.Joiner = (*Link)(nil)
	_ transport.Namer  = (*Link)(nil)
	_ transport.Sharer = (*Link)(nil)
)

// Open attaches to a network interface. transport.ErrNoInterface, ErrInterfaceDown, ErrPermission (CAP_NET_RAW is
// missing), ErrNotSupported.
func Open(name string, cfg Config) (*Link, error) {
	l, err := open(name, cfg)
	if err != nil {
		return nil, fmt.Errorf("packet %s: open: %w", name, err)
	}
	return l, nil
}

func open(name string, cfg Config) (*Link, error) {
	if cfg.EtherType == 0 {
		cfg.EtherType = transport.EtherTypeDefault
	}
	if cfg.ReceiveBuffer == 0 {
		cfg.ReceiveBuffer = DefaultReceiveBuffer
	}
	if cfg.ReceiveBuffer < 0 {
		return nil, fmt.Errorf("Config.ReceiveBuffer %d: negative", cfg.ReceiveBuffer)
	}
	ifi, mac, err := afpacket.Interface(name)
	if err != nil {
		return nil, err
	}
	filter, err := afpacket.Filter(cfg.EtherType, mac, cfg.Promiscuous)
	if err != nil {
		return nil, err
	}
	// Protocol 0: nothing arrives before all options are set. (Bound to more at once, the socket would get what other
	// programs send by this interface meanwhile.)
	conn, err := packet.Listen(ifi, packet.Raw, 0, &packet.Config{Filter: filter})
	if err != nil {
		return nil, afpacket.Explain(err)
	}
	l := &Link{name: name, mac: mac, mtu: ifi.MTU, etherType: cfg.EtherType, conn: conn, namespace: afpacket.Namespace()}
	if err := l.setUp(ifi.Index, cfg); err != nil {
		_, _ = conn.Close(), l.out.Close() // the first error is the one to report
		return nil, err
	}
	return l, nil
}

func (l *Link) setUp(index int, cfg Config) (err error) {
	if l.raw, err = l.conn.SyscallConn(); err != nil {
		return err
	}
	err = l.control(func(fd int) error {
		// Forced, where we may; else the kernel gives what it allows.
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, cfg.ReceiveBuffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, cfg.ReceiveBuffer)
		}
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		)
	})
	if err != nil {
		return fmt.Errorf("set options: %w", afpacket.Explain(err))
	}
	if err = l.control(func(fd int) error { return afpacket.Bind(fd, index) }); err != nil {
		return fmt.Errorf("bind: %w", afpacket.Explain(err))
	}
	l.presence.Open(index)
	l.sleeper = afpacket.NewSleeper(l.raw, l.conn.SetReadDeadline)
	l.groups = afpacket.NewGroups(index, func(option int, request *unix.PacketMreq) error {
		return l.control(func(fd int) error {
			return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, option, request)
		})
	})
	l.in.init(l, cfg.Promiscuous)
	if err := l.out.Open(index, l.mac, l.mtu, cfg.BypassQdisc); err != nil {
		return err
	}
	l.promisc, err = l.groups.Promiscuous(l.name, cfg.Promiscuous, !cfg.NoVLANs)
	return err
}

// control runs f on the descriptor, which stays open meanwhile.
func (l *Link) control(f func(fd int) error) error {
	var err error
	if e := l.raw.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return transport.ErrClosed
	}
	return err
}

// MAC returns the interface's address.
func (l *Link) MAC() transport.MAC { return l.mac }

// MTU returns the interface's MTU, in bytes, as it was when the link was opened.
func (l *Link) MTU() int { return l.mtu }

// Name returns the interface's name.
func (l *Link) Name() string { return l.name }

// Segment implements transport.Sharer: processes that open the same interface for the same EtherType share it.
func (l *Link) Segment() string { return fmt.Sprintf("%v/%v/%s", l.mac, l.etherType, l.namespace) }

// Promiscuous returns why the NIC is in promiscuous mode because of this link, or "" if it is not.
func (l *Link) Promiscuous() string { return l.promisc }

// Join implements transport.Joiner.
func (l *Link) Join(group transport.MAC) error { return l.wrap("join", l.groups.Join(group)) }

// Leave implements transport.Joiner.
func (l *Link) Leave(group transport.MAC) error { return l.wrap("leave", l.groups.Leave(group)) }

func (l *Link) wrap(act string, err error) error {
	if err == nil {
		return nil
	}
	if l.closed.Load() || errors.Is(err, transport.ErrClosed) {
		return transport.ErrClosed
	}
	return fmt.Errorf("packet %s: %s: %w", l.name, act, err)
}

// Wait implements transport.Link. The goroutine sleeps in the runtime's poller, and holds no thread. While the interface
// is down Wait returns transport.ErrInterfaceDown, and ErrNoInterface when it is gone for good.
func (l *Link) Wait(ctx context.Context) error {
	if err := l.presence.Check(l.control); err != nil {
		return l.wrap("wait", err)
	}
	err := l.sleeper.Sleep(ctx, l.in.ready)
	if err != nil && err == ctx.Err() { //nolint:errorlint // the very value
		return err
	}
	if err == nil {
		err = l.in.takeFailure()
	}
	return l.wrap("wait", err)
}

// Counters implements transport.Link. RxDropped is what the kernel had no room for.
func (l *Link) Counters() transport.Counters {
	c := transport.Counters{RxDropped: l.drops()}
	l.in.count(&c)
	l.out.Count(&c)
	return c
}

func (l *Link) drops() uint64 {
	l.dropMu.Lock()
	defer l.dropMu.Unlock()
	if s, err := l.conn.Stats(); err == nil {
		l.dropped += uint64(s.Drops)
	}
	return l.dropped
}

// Send implements transport.Link. A frame costs one send(2), a batch one sendmmsg(2) per afpacket.Batch frames.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	n, err := l.out.Send(frames)
	if err == transport.ErrBusy { //nolint:errorlint // the very value, on the data path
		return n, err
	}
	return n, l.wrap("send", err)
}

// Close implements transport.Link.
func (l *Link) Close() error {
	l.close.Do(func() {
		l.drops()
		l.closed.Store(true)
		l.sleeper.Close()
		l.closeErr = errors.Join(l.conn.Close(), l.out.Close())
	})
	return l.closeErr
}
