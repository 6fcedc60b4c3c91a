package ring

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// Link is a transport.Link, Joiner, WakeupMasker, Namer and Sharer on one network interface.
type Link struct {
	name      string
	mac       transport.MAC
	mtu       int
	etherType transport.EtherType
	namespace string // that it was opened in
	promisc   string // why the NIC is promiscuous; empty if it is not
	all       bool   // Config.Promiscuous
	fd        int    // see control
	presence  afpacket.Presence
	groups    *afpacket.Groups
	alarm     *alarm

	polling atomic.Bool // somebody is in Poll, or Close has unmapped the ring
	closed  atomic.Bool
	ring    ring
	tpids   []transport.EtherType // of the last Poll's frames
	rx      rxCounters

	outbox afpacket.Outbox

	mu      sync.Mutex // guards dropped, and fd against Close
	dropped uint64     // the kernel's own count starts anew whenever it is read
}

var (
	_ transport.Link         = (*Link)(nil)
	_ transport.Joiner       = (*Link)(nil)
	_ transport.WakeupMasker = (*Link)(nil)
	_ transport.Namer        = (*Link)(nil)
	_ transport.Sharer       = (*Link)(nil)
)

// Open attaches to a network interface. transport.ErrNoInterface, ErrInterfaceDown, ErrPermission (CAP_NET_RAW is
// missing), ErrNotSupported.
func Open(name string, cfg Config) (*Link, error) {
	l, err := open(name, cfg)
	if err != nil {
		return nil, fmt.Errorf("ring %s: open: %w", name, err)
	}
	return l, nil
}

func open(name string, cfg Config) (*Link, error) {
	if cfg.EtherType == 0 {
		cfg.EtherType = transport.EtherTypeDefault
	}
	if cfg.Slots == 0 {
		cfg.Slots = DefaultSlots
	}
	if cfg.Slots < 2 || cfg.Slots > MaxSlots {
		return nil, fmt.Errorf("Config.Slots %d: out of range (2 to %d)", cfg.Slots, MaxSlots)
	}
	ifi, mac, err := afpacket.Interface(name)
	if err != nil {
		return nil, err
	}
	l := &Link{name: name, mac: mac, mtu: ifi.MTU, etherType: cfg.EtherType, all: cfg.Promiscuous, namespace: afpacket.Namespace()}
	// Protocol 0: nothing arrives before the filter is in place and the socket bound.
	l.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, afpacket.Explain(err)
	}
	if err := l.setUp(ifi.Index, cfg); err != nil {
		l.tearDown()
		return nil, err
	}
	return l, nil
}

func (l *Link) setUp(index int, cfg Config) error {
	filter, err := afpacket.Filter(cfg.EtherType, l.mac, cfg.Promiscuous)
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		program[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	fprog := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	steps := []struct {
		what string
		do   func() error
	}{
		{"attach the filter", func() error { return unix.SetsockoptSockFprog(l.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, fprog) }},
		{"ignore outgoing frames", func() error { return l.set(unix.PACKET_IGNORE_OUTGOING, 1) }},
		{"make the ring", func() error { return l.ring.open(l.fd, l.mtu, cfg.Slots) }},
		{"watch the socket", func() (err error) { l.alarm, err = newAlarm(l.fd); return err }},
		{"bind", func() error { return afpacket.Bind(l.fd, index) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.what, afpacket.Explain(err))
		}
	}
	if err := l.outbox.Open(index, l.mac, l.mtu, !cfg.Qdisc); err != nil {
		return err
	}
	l.presence.Open(index)
	l.groups = afpacket.NewGroups(index, func(option int, request *unix.PacketMreq) error {
		return l.control(func(fd int) error { return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, option, request) })
	})
	l.promisc, err = l.groups.Promiscuous(l.name, cfg.Promiscuous, !cfg.NoVLANs)
	return err
}

// control runs f on the socket, which stays open meanwhile: a number that Close has freed may be another file's.
func (l *Link) control(f func(fd int) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return transport.ErrClosed
	}
	return f(l.fd)
}

func (l *Link) set(option, value int) error {
	return unix.SetsockoptInt(l.fd, unix.SOL_PACKET, option, value)
}

func (l *Link) tearDown() {
	if l.alarm != nil {
		l.alarm.close()
	}
	l.ring.close()
	_ = l.outbox.Close() // it was open, or never was
	_ = unix.Close(l.fd) // also ends membership and promiscuous mode
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
	if err == nil || errors.Is(err, transport.ErrBusy) {
		return err
	}
	if l.closed.Load() {
		return transport.ErrClosed
	}
	return fmt.Errorf("ring %s: %s: %w", l.name, act, err)
}

// Wait implements transport.Link. The goroutine sleeps in the runtime's poller, and holds no thread. While the interface
// is down Wait returns transport.ErrInterfaceDown, and ErrNoInterface when it is gone for good.
func (l *Link) Wait(ctx context.Context) error {
	if l.closed.Load() {
		return transport.ErrClosed
	}
	if err := l.presence.Check(l.control); err != nil {
		return l.wrap("wait", err)
	}
	err := l.alarm.wait(ctx)
	if err != nil && err == ctx.Err() { //nolint:errorlint // the very value
		return err
	}
	return l.wrap("wait", l.presence.Explain(err))
}

// MaskWakeups implements transport.WakeupMasker. It costs one epoll_ctl(2), 0.35 µs.
func (l *Link) MaskWakeups(on bool) { l.alarm.setQuiet(on) }

// Counters implements transport.Link. RxDropped is what did not fit into the ring.
func (l *Link) Counters() transport.Counters {
	c := transport.Counters{RxDropped: l.drops()}
	l.rx.read(&c)
	l.outbox.Count(&c)
	return c
}

func (l *Link) drops() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.countDrops()
}

// countDrops reads the kernel's count. The caller holds mu.
func (l *Link) countDrops() uint64 {
	if l.closed.Load() {
		return l.dropped
	}
	if s, err := unix.GetsockoptTpacketStats(l.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		l.dropped += uint64(s.Drops)
	}
	return l.dropped
}

// Close implements transport.Link. It waits for a Poll in progress on another goroutine.
func (l *Link) Close() error {
	l.mu.Lock()
	l.countDrops()
	first := !l.closed.Swap(true)
	l.mu.Unlock()
	if !first {
		return nil
	}
	for !l.polling.CompareAndSwap(false, true) { // and it stays true: the ring is gone
		runtime.Gosched()
	}
	l.tearDown()
	return nil
}
