package shm

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/joins"
	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// Link is a transport.Link, Joiner, WakeupMasker, Namer and Wrapper: a station of a segment
// in shared memory.
type Link struct {
	name   string // of the segment
	mac    transport.MAC
	mtu    int
	data   int // of a ring that this link writes, in bytes
	wire   *wire
	joined joins.Set

	etherType transport.EtherType // that the wire receives, if it receives one alone; else EtherTypeAny

	folder   folder
	listener *net.UnixListener
	memories *memories // apart, as they outlive the link
	event    *eventfd
	bellFD   int
	bell     *records.Bell
	bellPage []byte
	poller   *netpoll.Poller

	sleepMu sync.Mutex   // guards what the bell says of this link
	waiters atomic.Int32 // goroutines in Wait
	masked  atomic.Bool
	left    atomic.Bool // the last Poll has left rings in ready

	stations atomic.Pointer[table]
	sources  [MaxStations]atomic.Pointer[source]
	used     atomic.Int32 // bits of the bell below it were used
	refused  atomic.Pointer[error]

	mu     sync.Mutex // guards changes of stations, and what follows
	met    []*station // and not lost; of those with one address the last is in the table
	bits   [MaxStations]bool
	unread []*source // of stations that have gone, the oldest first; Poll may have claimed some since
	lost   uint64    // RxDropped, of sources that are forgotten
	alters bool      // Alters was called

	txMu sync.Mutex // guards what follows, the Tx counters' writing, and what stations say
	sender
	tx struct{ frames, bytes, refused, busy atomic.Uint64 }

	receiver // the polling goroutine's
	rx       struct{ frames, bytes, malformed atomic.Uint64 }

	open    context.Context // until Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	closed  atomic.Bool
	close   sync.Once
	err     error // of Close
}

var (
	_ transport.Link         = (*Link)(nil)
	_ transport.Joiner       = (*Link)(nil)
	_ transport.WakeupMasker = (*Link)(nil)
	_ transport.Namer        = (*Link)(nil)
	_ transport.Wrapper      = (*Link)(nil)
)

// Open makes a station of the segment called name, and meets those that are there. It waits for
// these, but for a second at most, once it has had its turn: links open and close one at a time,
// and one that does not get on holds the others for five seconds. Errors:
// transport.ErrNotSupported; memory for a ring that cannot be made; an address that is another
// link's on the segment, with the number of its process (syscall.EADDRINUSE); a folder that is not
// the user's own; a link that keeps its turn.
func Open(name string, cfg Config) (*Link, error) {
	l, err := open(name, kernel(), cfg)
	if err != nil {
		return nil, fmt.Errorf("shm %s: open: %w", name, err)
	}
	return l, nil
}

// open is Open on a host with that kernel.
func open(name, kernel string, cfg Config) (_ *Link, err error) {
	if err := cfg.validate(name); err != nil {
		return nil, err
	}
	if !records.Atomic {
		return nil, fmt.Errorf("%w: no atomics of 64 bits that processes could share (build for ARM with GOARM=7)",
			transport.ErrNotSupported)
	}
	l := &Link{name: name, mac: cfg.MAC, mtu: cfg.MTU, data: cfg.RingBytes, etherType: transport.EtherTypeAny}
	if f, one := transport.As[transport.TypeFilter](cfg.Wire); one {
		l.etherType = f.EtherType()
	}
	l.memories = newMemories(l)
	l.stations.Store(&table{byMAC: map[transport.MAC]*station{}})
	l.open, l.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			l.cancel()
			l.release()
		}
	}()
	if err = tryMemory(records.Bytes(l.data)); err != nil { // else it would meet nobody
		return nil, err
	}
	if l.event, err = newEventfd(); err != nil {
		return nil, err
	}
	l.poller = netpoll.NewPoller(l.event.conn, l.event.file.SetReadDeadline, l.ready)
	page := os.Getpagesize()
	if l.bellFD, err = newMemory(page); err != nil {
		return nil, err
	}
	if l.bellPage, err = l.memories.mapShared(l.bellFD, page); err != nil {
		return nil, err
	}
	l.bell = records.NewBell(l.bellPage)
	var unlock func()
	if l.folder, unlock, err = openFolder(cfg.Dir, folderName(name, kernel), lockTimeout); err != nil {
		return nil, err
	}
	var others []neighbour
	l.listener, others, err = l.folder.listen(l.mac)
	unlock()
	if err != nil {
		l.folder.remove()
		return nil, err
	}
	if cfg.Wire != nil {
		l.wire = newWire(cfg.Wire)
		l.running.Go(l.wireLoop) // until Close, which closes the wire
	}
	l.running.Go(l.accept) // until Close, which closes the listener
	l.meetAll(others)
	return l, nil
}

// MAC implements transport.Link.
func (l *Link) MAC() transport.MAC { return l.mac }

// MTU implements transport.Link.
func (l *Link) MTU() int { return l.mtu }

// Name implements transport.Namer: "shm demo", or the name of the wire.
func (l *Link) Name() string {
	if l.wire != nil {
		return transport.Name(l.wire.link)
	}
	return "shm " + l.name
}

// LocalPath implements transport.LocalPather.
func (l *Link) LocalPath() transport.LocalPath { return transport.ByMemory }

// Exact implements transport.Exact: a link that stands alone is, as all its frames stay in memory.
func (l *Link) Exact() bool { return l.wire == nil }

// Alters implements transport.Exact. A station that has been met before knows it at once, and one
// that is met later before it can send.
func (l *Link) Alters() {
	l.mu.Lock()
	l.alters = true
	met := slices.Clone(l.met)
	l.mu.Unlock()
	l.txMu.Lock()
	defer l.txMu.Unlock()
	for _, s := range met {
		if s.bell != nil { // else it has gone
			s.bell.Alter()
		}
	}
}

// Altered implements transport.Exact.
func (l *Link) Altered() bool { return l.bell.Altered() }

// Unwrap implements transport.Wrapper: it returns Config.Wire, or a wrapper around it if that has
// stamps, or its stations may move.
func (l *Link) Unwrap() transport.Link {
	if l.wire == nil {
		return nil
	}
	return l.wire.outer
}

// Join implements transport.Joiner.
func (l *Link) Join(group transport.MAC) error {
	return l.wrap("join", l.joined.Join(group, func(bool) error { return l.changeJoin(group, transport.Join) }))
}

// Leave implements transport.Joiner.
func (l *Link) Leave(group transport.MAC) error {
	return l.wrap("leave", l.joined.Leave(group, func(bool) error { return l.changeJoin(group, transport.Leave) }))
}

// changeJoin has the wire join a group, or leave it. One that is gone for good has no part in that.
func (l *Link) changeJoin(group transport.MAC, change func(transport.Link, transport.MAC) error) error {
	switch {
	case l.closed.Load():
		return transport.ErrClosed
	case l.wire != nil && !l.wire.gone.Load():
		return change(l.wire.link, group)
	}
	return nil
}

// wrap adds the link's name and the act to an error. After Close every error is ErrClosed.
func (l *Link) wrap(act string, err error) error {
	switch {
	case err == nil:
		return nil
	case l.closed.Load():
		return transport.ErrClosed
	}
	return fmt.Errorf("%s: %s: %w", l.Name(), act, err)
}

// Counters implements transport.Link. With a wire they are of both ways, and the second copy of a
// multicast is not among them.
func (l *Link) Counters() transport.Counters {
	c := transport.Counters{
		TxFrames: l.tx.frames.Load(), TxBytes: l.tx.bytes.Load(),
		TxRefused: l.tx.refused.Load(), TxBusy: l.tx.busy.Load(),
		RxFrames: l.rx.frames.Load(), RxBytes: l.rx.bytes.Load(), RxMalformed: l.rx.malformed.Load(),
	}
	l.mu.Lock()
	c.RxDropped = l.lost
	for i := range l.sources[:l.used.Load()] {
		if s := l.sources[i].Load(); s != nil {
			c.RxDropped += s.reader.Dropped()
		}
	}
	l.mu.Unlock()
	if l.wire != nil {
		w := l.wire.link.Counters()
		c.TxFragmented = w.TxFragmented
		c.RxDropped += w.RxDropped
		c.RxMalformed += w.RxMalformed
	}
	return c
}

// Close implements transport.Link. It closes the wire, too.
func (l *Link) Close() error {
	l.close.Do(func() {
		l.closed.Store(true)
		l.joined.Close()
		for i := range l.sources { // before they hear it from the kernel
			if s := l.sources[i].Load(); s != nil {
				s.reader.Close()
			}
		}
		l.cancel()
		if l.wire != nil {
			l.err = l.wire.link.Close()
		}
		l.release()
	})
	return l.err
}

// lastWait is how long Close waits for what another process holds up.
const lastWait = 100 * time.Millisecond

// apart calls f in a goroutine of its own, as another process may hold it up: the two share what it
// works on. wait waits for it as long as the link is open, and not for long after that, and reports
// whether it has ended.
func (l *Link) apart(f func()) (wait func() bool) {
	done := make(chan struct{})
	go func() { // ends when that process lets it
		defer close(done)
		f()
	}()
	return func() bool {
		select {
		case <-done:
			return true
		case <-l.open.Done():
		}
		select {
		case <-done:
			return true
		case <-time.After(lastWait):
			return false
		}
	}
}

// release gives back what open has taken. It waits for the link's goroutines.
func (l *Link) release() {
	if l.listener != nil {
		_ = os.Remove(l.folder.socket(l.mac)) // before it is closed: until then it is ours
		_ = l.listener.Close()
	}
	if l.event == nil {
		return
	}
	_ = l.event.file.Close() // which ends all waits
	l.running.Wait()
	if l.listener != nil {
		l.folder.remove()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.sources {
		if s := l.sources[i].Load(); s != nil {
			l.free(s)
		}
	}
	l.memories.retire(l.bellPage)
	l.memories.closed()
	if l.bellFD >= 0 {
		_ = unix.Close(l.bellFD)
	}
}
