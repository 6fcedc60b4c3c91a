package afpacket

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/transport"
)

// Config is what can be chosen for any link over AF_PACKET.
type Config struct {
	EtherType   transport.EtherType // 0: transport.EtherTypeDefault
	Promiscuous bool                // receive frames for other stations and for groups not joined
	NoVLANs     bool                // leave a NIC with a VLAN filter as it is
	BypassQdisc bool                // send past the interface's queueing discipline
	Trains      bool                // send and receive trains: see TakesTrains
	Granted     *Granted            // the sockets of the service that grants them; nil: open them here
	// SoftwareStamps is for links that cannot tell the NIC's stamps of received frames: it is not
	// asked for any.
	SoftwareStamps bool
	// Monitor is for links whose frames take another way: the socket joins groups and tells of the
	// interface's state, and receives and sends nothing.
	Monitor bool
}

// Socket is a link's receiving socket.
type Socket interface {
	// Open makes the socket. It receives nothing before it is bound, which is left to [Open].
	Open(ifi *Interface) (*netpoll.Poller, error)
	// Control runs f on the descriptor and keeps it open meanwhile. After Close it returns
	// ErrClosed.
	Control(f func(fd int) error) error
	Close() error
}

// Attachment is one interface as a link sees it: its address, state, groups and counters, and the
// socket that sends. A link embeds it and gets from it all of transport.Link but Poll, and
// transport.Joiner, Namer, Sharer, PortLocker, Attached, Plugged, TypeFilter, Trainer and, but for
// ReceivedStamp, Stamper.
//
// What the link itself calls are functions and not methods, for a method would be one of the link's
// too: Open, and in Poll Accept and CountReceived.
type Attachment struct {
	kind    string     // of link, for errors: ring or packet
	ifi     *Interface // as it was when the link was opened
	cfg     Config
	promisc string // why the NIC is promiscuous

	socket Socket
	groups *groups
	poller *netpoll.Poller
	sender sender
	state  linkState
	rx     rxCounters

	pending atomic.Bool  // the link has received frames that no Poll has handed out
	waiters atomic.Int32 // goroutines in Wait
	masked  atomic.Bool  // wake-ups are

	stamping stamping

	closed   atomic.Bool
	close    sync.Once
	closeErr error

	dropMu  sync.Mutex // guards dropped
	dropped uint64     // the kernel's count restarts whenever it is read
}

// Open attaches a link of a kind, such as ring, to the interface called name, by the receiving
// socket s. If it fails, nothing stays open.
func Open(a *Attachment, kind, name string, cfg Config, s Socket) error {
	if err := a.open(kind, name, cfg, s); err != nil {
		return fmt.Errorf("%s %s: open: %w", kind, name, err)
	}
	return nil
}

func (a *Attachment) open(kind, name string, cfg Config, s Socket) (err error) {
	if cfg.EtherType == 0 {
		cfg.EtherType = transport.EtherTypeDefault
	}
	a.kind, a.cfg, a.socket = kind, cfg, s
	if err := cfg.Granted.claim(); err != nil {
		return err
	}
	if a.ifi, err = a.find(name); err == nil {
		if a.poller, err = s.Open(a.ifi); err == nil {
			if err = a.attach(); err != nil {
				_ = s.Close() // the first error is the one to report
			}
		}
	}
	if err != nil {
		_ = cfg.Granted.Close() // likewise
	}
	return err
}

// find learns what there is to know of the interface: here, or from the service that granted the
// sockets, which may be in another network namespace.
func (a *Attachment) find(name string) (*Interface, error) {
	g := a.cfg.Granted
	if g == nil {
		return FindInterface(name)
	}
	if a.cfg.Promiscuous {
		return nil, errGrantedPromiscuous
	}
	a.cfg.EtherType = g.EtherType
	return g.Interface, nil
}

// attach binds the receiving socket to the interface, opens the sending one, and makes the NIC
// promiscuous if that was asked for, or if the NIC would drop tagged frames that are wanted.
func (a *Attachment) attach() error {
	a.state.ifi = a.ifi
	a.groups = newGroups(a.ifi.Index, a.socket)
	if !a.cfg.Trains && a.cfg.EtherType != transport.EtherTypeAny { // else it takes what others can make nothing of
		if err := a.groups.tell(plainMark(a.cfg.EtherType), true); err != nil {
			return Explain("say that it takes no trains", err)
		}
	}
	if a.cfg.Granted == nil { // else the service has bound it
		if err := a.socket.Control(a.bind); err != nil {
			return err
		}
	}
	a.sender.fd = -1
	if !a.cfg.Monitor {
		if err := a.sender.open(a.ifi, a.cfg); err != nil {
			return err
		}
	}
	switch {
	case a.cfg.Promiscuous:
		a.promisc = "asked for"
	case a.ifi.Driver.FiltersVLANs && !a.cfg.NoVLANs:
		a.promisc = "the NIC filters VLANs (rx-vlan-filter) and would drop tagged frames of unregistered VIDs"
	default:
		return nil
	}
	if err := a.groups.promiscuous(); err != nil {
		_ = a.sender.close() // the first error is the one to report
		return Explain("make the NIC promiscuous", err)
	}
	return nil
}

// bind makes the receiving socket receive. Before it is bound it receives nothing: its filter and
// options must be in place by then.
func (a *Attachment) bind(fd int) error {
	if a.cfg.Monitor {
		return BindMonitor(fd, a.ifi.Index, a.cfg.EtherType)
	}
	filter, err := newFilter(a.cfg.EtherType, a.ifi.MAC, a.cfg.Promiscuous, a.cfg.Trains)
	if err != nil {
		return err
	}
	return Bind(fd, a.ifi.Index, filter)
}

// Bind makes a socket receive what of an interface passes the filter.
func Bind(fd, index int, filter []bpf.RawInstruction) error {
	if err := AttachFilter(fd, filter); err != nil {
		return Explain("attach the filter", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return Explain("ignore outgoing frames", err)
	}
	return bindTo(fd, index, unix.ETH_P_ALL)
}

// BindMonitor makes a socket hear of an interface that goes down or away. The kernel tells those
// that receive, so this one is bound to the link's EtherType, behind a filter that drops all.
func BindMonitor(fd, index int, etherType transport.EtherType) error {
	if err := DropAll(fd); err != nil {
		return err
	}
	return bindTo(fd, index, uint16(etherType))
}

// BindCounter makes a socket count frames of an EtherType for a station and for groups, or for
// others, too. Nobody reads it: Count says how many have come, and most of them find no room.
func BindCounter(fd, index int, etherType transport.EtherType, mac transport.MAC, promiscuous bool) error {
	filter, err := newFilter(etherType, mac, promiscuous, false)
	if err != nil {
		return err
	}
	if err := AttachFilter(fd, filter); err != nil {
		return Explain("attach the filter", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 0); err != nil { // the least there is
		return Explain("give it little room", err)
	}
	return bindTo(fd, index, uint16(etherType))
}

// Count returns how many frames have come to a socket since the last call.
func Count(fd int) uint64 {
	s, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return uint64(s.Packets)
}

// bindTo binds a socket to an interface's frames of an EtherType.
func bindTo(fd, index int, etherType uint16) error {
	var b [2]byte // in network byte order, whatever this processor's is
	binary.BigEndian.PutUint16(b[:], etherType)
	to := &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(b[:]), Ifindex: index}
	return Explain("bind", unix.Bind(fd, to))
}

// MAC returns the interface's address.
func (a *Attachment) MAC() transport.MAC { return a.ifi.MAC }

// MTU returns the interface's MTU, in bytes, as it was when the link was opened.
func (a *Attachment) MTU() int { return a.ifi.MTU }

// Name returns the interface's name, as it was when the link was opened: a link stays with its
// interface, whatever that is called since.
func (a *Attachment) Name() string { return a.ifi.Name }

// EtherType implements transport.TypeFilter.
func (a *Attachment) EtherType() transport.EtherType { return a.cfg.EtherType }

// Interface implements transport.Attached, as it was when the link was opened.
func (a *Attachment) Interface() (index int, namespace string) { return a.ifi.Index, a.ifi.Namespace }

// HasCarrier implements transport.Plugged.
func (a *Attachment) HasCarrier() bool {
	flags := uint16(unix.IFF_RUNNING)
	err := a.socket.Control(func(fd int) (err error) {
		flags, err = interfaceFlags(fd, a.ifi.Index)
		return err
	})
	return err != nil || flags&unix.IFF_UP == 0 || flags&unix.IFF_RUNNING != 0
}

// Segment implements transport.Sharer: processes that open the same interface for the same
// EtherType share it. The index tells apart VLAN devices and bond members with one address.
func (a *Attachment) Segment() string { return a.ifi.Segment(a.cfg.EtherType) }

// Segment names the attachment of an interface for an EtherType.
func (i *Interface) Segment(etherType transport.EtherType) string {
	return fmt.Sprintf("%v/%d/%v/%s", i.MAC, i.Index, etherType, i.Namespace)
}

// LockPort implements transport.PortLocker: on granted sockets the service has the locks.
func (a *Attachment) LockPort(cluster uint32, port uint8) (io.Closer, error) {
	if a.cfg.Granted == nil {
		return nil, transport.ErrNotSupported
	}
	lock, err := a.cfg.Granted.LockPort(cluster, port)
	return lock, a.wrap("lock port", err)
}

// Promiscuous returns why this link has made the NIC promiscuous, or "" if it has not.
func (a *Attachment) Promiscuous() string { return a.promisc }

// Join implements transport.Joiner.
func (a *Attachment) Join(group transport.MAC) error { return a.wrap("join", a.groups.join(group)) }

// Leave implements transport.Joiner.
func (a *Attachment) Leave(group transport.MAC) error { return a.wrap("leave", a.groups.leave(group)) }

// Send implements transport.Link. A frame costs one send(2), more cost one sendmmsg(2) per [Batch].
func (a *Attachment) Send(frames []transport.Frame) (int, error) {
	n, err := a.sender.send(frames)
	if err == nil {
		return n, nil
	}
	return n, a.wrap("send", err)
}

// Wait implements transport.Link. The goroutine sleeps in the runtime's poller and holds no thread.
// It returns transport.ErrInterfaceDown while the interface is down, ErrNoInterface once it is
// gone. One that is removed goes down first: the Wait that sees it may say so, and the next
// ErrNoInterface.
func (a *Attachment) Wait(ctx context.Context) error {
	if a.closed.Load() {
		return transport.ErrClosed
	}
	a.waiters.Add(1)
	defer a.waiters.Add(-1)
	if a.pending.Load() && !a.masked.Load() {
		return nil
	}
	err := a.state.check(a.socket)
	if err == nil {
		err = a.poller.Wait(ctx)
	}
	if err != nil && err == ctx.Err() { //nolint:errorlint // the very value
		return err
	}
	return a.wrap("wait", err)
}

// Sleep is for Sleep of links that have one, with the socket's.
func Sleep(a *Attachment, sleep func() error) error {
	switch {
	case a.closed.Load():
		return transport.ErrClosed
	case a.pending.Load() && !a.masked.Load():
		return nil
	}
	err := sleep()
	if a.closed.Load() { // it may have ended as if a Poll were in progress, which Close pretends
		return transport.ErrClosed
	}
	return a.wrap("wait", err)
}

// wrap adds the link's name and the act to an error, explains one of the system's, and remembers
// that the interface went down. ErrBusy stays as it is; after Close every error is ErrClosed.
func (a *Attachment) wrap(act string, err error) error {
	if err == nil || err == transport.ErrBusy { //nolint:errorlint // the very value, on the data path
		return err
	}
	if a.closed.Load() || errors.Is(err, transport.ErrClosed) {
		return transport.ErrClosed
	}
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // a wrapped one is explained already
		err = explain(errno)
	}
	if errors.Is(err, transport.ErrInterfaceDown) {
		a.state.wentDown()
	}
	return fmt.Errorf("%s %s: %s: %w", a.kind, a.ifi.Name, act, err)
}

// Counters implements transport.Link. RxDropped is what the kernel had no room for.
func (a *Attachment) Counters() transport.Counters {
	c := transport.Counters{RxDropped: a.drops() + a.rx.noRoom.Load()}
	a.rx.read(&c)
	a.sender.count(&c)
	return c
}

func (a *Attachment) drops() uint64 {
	a.dropMu.Lock()
	defer a.dropMu.Unlock()
	_ = a.socket.Control(func(fd int) error { // once closed, the last count stands
		s, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err == nil {
			a.dropped += uint64(s.Drops)
		}
		return err
	})
	return a.dropped
}

// SetPending says whether the link has frames that no Poll has handed out: a Wait then ends at
// once, also one that has looked before, which kick ends.
func SetPending(a *Attachment, pending bool, kick func()) {
	if a.pending.Load() == pending {
		return
	}
	a.pending.Store(pending)
	if pending && a.waiters.Load() > 0 && !a.masked.Load() {
		kick()
	}
}

// Pending reports what SetPending has said.
func Pending(a *Attachment) bool { return a.pending.Load() }

// MaskPending is for MaskWakeups of links that have one: masked, pending frames end no Wait.
func MaskPending(a *Attachment, on bool, kick func()) {
	a.masked.Store(on)
	if !on && a.pending.Load() {
		kick()
	}
}

// TrainMTU implements transport.Trainer.
func (a *Attachment) TrainMTU() int {
	if !a.cfg.Trains {
		return a.ifi.MTU
	}
	return max(0, a.ifi.MTU-TrainOverhead)
}

// TrainFrames implements transport.Trainer.
func (a *Attachment) TrainFrames() int {
	if !a.cfg.Trains {
		return 0
	}
	if n := min(maxTrain, maxTrainBytes/max(1, a.TrainMTU())); n > 1 {
		return n
	}
	return 0
}

// TrainHeadroom implements transport.Trainer: Ethernet's header is before the whole train.
func (a *Attachment) TrainHeadroom() int { return 0 }

// Trains implements transport.Trainer.
func (a *Attachment) Trains() (sent, received uint64) {
	if a.sender.trains != nil {
		sent = a.sender.trains.count.Load()
	}
	return sent, a.rx.trains.Load()
}

// Closed reports whether Close was called.
func Closed(a *Attachment) bool { return a.closed.Load() }

// Close implements transport.Link. Memberships and promiscuous mode end with the socket.
func (a *Attachment) Close() error {
	a.close.Do(func() {
		a.drops()
		a.closed.Store(true)
		a.groups.Close()
		a.closeStamps()
		a.poller.Close()
		a.closeErr = errors.Join(a.socket.Close(), a.sender.close(), a.cfg.Granted.Close())
	})
	return a.closeErr
}
