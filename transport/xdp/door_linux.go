package xdp

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// door is where a link's frames come in: a socket for each of the interface's receive queues. The
// first one sends, too.
type door struct {
	link     *Link
	cfg      Config
	at       *afxdp.Attachment // what has the frames come; nil: the service that granted them has it
	granted  *afpacket.Granted // nil: at is this process's own
	program  int               // a granted link's: the descriptor that keeps the program attached; else -1
	mode     Mode
	fallback string // why not a better mode
	queues   []queue
	number   int // of queues
	wakeup   *netpoll.Wakeup

	mu      sync.Mutex // guards what follows
	fd      int        // the packet socket that tells of the interface; -1 when closed
	open    bool       // the queues' sockets are
	dropped uint64     // by the kernel, once they are closed
	counter int        // the packet socket that counts frames of queues that have come since; -1: none
	late    uint64     // these
}

var errAnyType = fmt.Errorf("Config.EtherType: it takes frames from the kernel, so it must be one "+
	"(use link ring to receive all): %w", transport.ErrNotSupported)

// check checks the configuration.
func (d *door) check() error {
	switch {
	case d.cfg.EtherType == transport.EtherTypeAny:
		return errAnyType
	case !xsk.Mode(d.cfg.Mode).Valid():
		return fmt.Errorf("Config.Mode %d: want ModeAuto, ZeroCopy, Native or Generic", d.cfg.Mode)
	case d.cfg.Slots != 0 && (d.cfg.Slots < 2 || d.cfg.Slots > MaxSlots):
		return fmt.Errorf("Config.Slots %d: out of range (2 to %d)", d.cfg.Slots, MaxSlots)
	}
	return nil
}

// Open implements afpacket.Socket.
func (d *door) Open(ifi *afpacket.Interface) (_ *netpoll.Poller, err error) {
	d.counter = -1
	if d.granted != nil {
		err = d.adopt()
	} else {
		err = d.enter(ifi)
	}
	if d.fd < 0 {
		return nil, err
	}
	if err == nil {
		err = d.watch()
	}
	if err != nil {
		return nil, errors.Join(err, d.leave())
	}
	d.link.sender.open(d.queues[0].socket, d.link.MAC(), ifi.MTU, d.link.kick)
	d.wakeup.AskInMemory(d.link.received)
	return d.wakeup.Poller(), nil
}

// enter opens the sockets, and has the program send them the link's frames.
func (d *door) enter(ifi *afpacket.Interface) (err error) {
	d.fd, d.program = -1, -1
	chunk, err := afxdp.ChunkFor(ifi, xsk.Mode(d.cfg.Mode))
	if err != nil {
		return err
	}
	if d.fd, err = afpacket.OpenSocket(); err != nil {
		return afxdp.Explain("make the packet socket", err)
	}
	d.at, err = afxdp.Open(ifi, chunk, afxdp.Config{
		EtherType: d.link.EtherType(), MAC: d.link.MAC(), Promiscuous: d.cfg.Promiscuous,
		Mode: xsk.Mode(d.cfg.Mode), Slots: slots(d.cfg.Slots), NoVLANs: d.cfg.NoVLANs,
	})
	if err != nil {
		return err
	}
	d.mode, d.fallback = Mode(d.at.Mode), d.at.Fallback
	d.receiveFrom(d.at.TakeSockets(), slots(d.cfg.Slots))
	if d.counter, err = afpacket.OpenSocket(); err != nil {
		return afxdp.Explain("make the packet socket that counts", err)
	}
	return afpacket.BindCounter(d.counter, ifi.Index, d.link.EtherType(), d.link.MAC(), d.cfg.Promiscuous)
}

// adopt takes the sockets that the service has opened.
func (d *door) adopt() (err error) {
	if d.fd, err = d.granted.TakeReceive(); err != nil {
		return err
	}
	x, fds := d.granted.XDP, d.granted.TakeMore()
	mode, err := xsk.ParseMode(x.Mode)
	d.mode, d.fallback, d.program = Mode(mode), x.Fallback, fds[0]
	var sockets []*xsk.Socket
	for queues := fds[1:]; len(queues) > 0; queues = queues[2:] {
		if err != nil {
			err = errors.Join(err, unix.Close(queues[0]), unix.Close(queues[1]))
			continue
		}
		var s *xsk.Socket
		if s, err = xsk.Adopt(xsk.ConfigOf(len(sockets), x.Chunk, x.Slots), queues[0], queues[1]); err == nil {
			sockets = append(sockets, s)
		}
	}
	d.receiveFrom(sockets, x.Slots)
	return afpacket.Explain("map the sockets' memory", err)
}

// slots returns how many frames a socket holds: a power of two.
func slots(asked int) int { return 1 << bits.Len(uint(cmp.Or(asked, DefaultSlots)-1)) }

// receiveFrom makes the sockets the door's.
func (d *door) receiveFrom(sockets []*xsk.Socket, slots int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open, d.number = true, len(sockets)
	for _, s := range sockets {
		d.queues = append(d.queues, queue{
			socket: s, taken: make([]uint64, 0, slots), enough: max(1, min(slots/8, maxEnough)),
		})
	}
}

// maxEnough is how many frames go back to the kernel together at most: those of two cache lines.
const maxEnough = 16

// watch makes the wake-ups. The packet socket is among those watched: it alone hears that the
// interface goes down.
func (d *door) watch() (err error) {
	fds := []int{d.fd}
	for _, q := range d.queues {
		fds = append(fds, q.socket.FD)
	}
	d.wakeup, err = netpoll.NewWakeup(fds...)
	return afpacket.Explain("watch the sockets", err)
}

// Control implements afpacket.Socket. The lock keeps fd ours: a number that Close has freed may be
// another file's.
func (d *door) Control(f func(fd int) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fd < 0 {
		return transport.ErrClosed
	}
	return f(d.fd)
}

// drops returns how many frames the kernel had no room for, or no socket: there is none for a
// receive queue that the interface has got since, and the program passes its frames on.
func (d *door) drops() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count()
	return d.dropped + d.late
}

// count brings dropped and late up to now. The caller holds mu.
func (d *door) count() {
	if d.counter >= 0 {
		d.late += afpacket.Count(d.counter)
	}
	if !d.open {
		return
	}
	d.dropped = 0
	for k := range d.queues { // by reference: the rest of a queue is Poll's
		d.dropped += d.queues[k].socket.Drops()
	}
}

// stopCounting ends the count of frames that the program passes on: without sockets those are all.
func (d *door) stopCounting() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counter < 0 {
		return nil
	}
	d.count()
	fd := d.counter
	d.counter = -1
	return unix.Close(fd)
}

// Close implements afpacket.Socket. It waits for a Poll in progress on another goroutine; polling
// stays true, as the memory is gone.
func (d *door) Close() error {
	for !d.link.polling.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
	d.wakeup.Close()
	d.link.sender.close()
	return d.leave()
}

// leave undoes Open. The program goes last: it keeps others off the interface until all else is as
// it was. Frames that it has no socket for it passes on, and those are not counted any more.
func (d *door) leave() error {
	errs := []error{d.stopCounting(), d.closeSockets()}
	if d.at != nil {
		errs = append(errs, d.at.Close())
	}
	if d.program >= 0 {
		errs = append(errs, unix.Close(d.program))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	fd := d.fd
	d.fd = -1
	return errors.Join(append(errs, unix.Close(fd))...)
}

// closeSockets closes the queues' sockets. Views of frames keep their addresses, if there are any.
func (d *door) closeSockets() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count()
	d.open = false
	var errs []error
	for _, q := range d.queues {
		if q.viewed {
			errs = append(errs, q.socket.Close())
		} else {
			errs = append(errs, q.socket.Discard())
		}
	}
	d.queues = nil
	return errors.Join(errs...)
}
