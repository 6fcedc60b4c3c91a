package xdp

import (
	"errors"
	"fmt"
	"math/bits"
	"net"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/internal/xdpprog"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// door is where a link's frames come in: the program on the interface, and a socket for each of its
// receive queues. The first one sends, too.
type door struct {
	link     *Link
	cfg      Config
	mode     Mode
	fallback string // why not a better mode
	program  *xdpprog.Program
	queues   []queue
	chunk    int // bytes of each
	count    int // of queues
	wakeup   *netpoll.Wakeup
	nic      nic

	mu      sync.Mutex // guards what follows
	fd      int        // the packet socket that tells of the interface; -1 when closed
	open    bool       // the queues' sockets are
	dropped uint64     // by the kernel, once they are closed
}

var errAnyType = fmt.Errorf("Config.EtherType: it takes frames from the kernel, so it must be one "+
	"(use link ring to receive all): %w", transport.ErrNotSupported)

// check checks the configuration.
func (d *door) check() error {
	switch {
	case d.cfg.EtherType == transport.EtherTypeAny:
		return errAnyType
	case d.cfg.Mode < ModeAuto || d.cfg.Mode > Generic:
		return fmt.Errorf("Config.Mode %d: want ModeAuto, ZeroCopy, Native or Generic", d.cfg.Mode)
	case d.cfg.Slots != 0 && (d.cfg.Slots < 2 || d.cfg.Slots > MaxSlots):
		return fmt.Errorf("Config.Slots %d: out of range (2 to %d)", d.cfg.Slots, MaxSlots)
	}
	return nil
}

// Open implements afpacket.Socket.
func (d *door) Open(ifi *net.Interface) (_ *netpoll.Poller, err error) {
	chunk, err := chunkFor(ifi)
	if err != nil {
		return nil, err
	}
	if d.fd, err = afpacket.OpenSocket(); err != nil {
		return nil, explain("make the packet socket", err)
	}
	if err = d.enter(ifi, chunk); err == nil {
		err = d.watch()
	}
	if err != nil {
		return nil, errors.Join(err, d.leave())
	}
	d.link.sender.open(d.queues[0].socket, d.link.MAC(), ifi.MTU, d.link.kick)
	return d.wakeup.Poller(), nil
}

// chunkFor returns the size of chunks for an interface's frames.
func chunkFor(ifi *net.Interface) (int, error) {
	chunk, ok := xsk.ChunkFor(ifi.MTU + transport.MaxHeaderLen)
	if !ok {
		most := xsk.MaxFrame() - transport.MaxHeaderLen
		return 0, fmt.Errorf("the interface's MTU is %d, and AF_XDP's frames must fit a page: %w "+
			"(on all nodes: ip link set %s mtu %d; or use link ring)",
			ifi.MTU, &transport.SizeError{Size: ifi.MTU, Max: most}, ifi.Name, most)
	}
	return chunk, nil
}

// enter opens the sockets, and has the program send them the link's frames.
func (d *door) enter(ifi *net.Interface, chunk int) error {
	driver, err := afpacket.AskDriver(ifi)
	if err != nil {
		return err
	}
	if err := d.nic.open(ifi); err != nil {
		return err
	}
	plugged := d.nic.hasCarrier()
	d.program, err = xdpprog.Load(xdpprog.Config{
		EtherType: d.link.EtherType(), MAC: d.link.MAC(), Promiscuous: d.cfg.Promiscuous, Queues: driver.RxQueues,
	})
	if err != nil {
		return explain("load the XDP program", err)
	}
	d.chunk, d.count = chunk, driver.RxQueues
	if err := d.openSockets(); err != nil {
		return err
	}
	if err := d.attach(ifi); err != nil {
		return err
	}
	if !d.cfg.NoVLANs { // by the one that holds the program: another Open may fail beside this one
		if err := d.nic.keepTags(); err != nil {
			return err
		}
	}
	if plugged {
		d.nic.awaitCarrier()
	}
	for k, q := range d.queues {
		if err := d.program.SetSocket(k, q.socket.FD); err != nil {
			return explain("hand the program a socket", err)
		}
	}
	return nil
}

// openSockets opens a socket for each receive queue.
func (d *door) openSockets() error {
	slots := d.cfg.Slots
	if slots == 0 {
		slots = DefaultSlots
	}
	slots = 1 << bits.Len(uint(slots-1))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = true
	for k := range d.count {
		cfg := xsk.Config{Chunk: d.chunk, Receive: slots}
		if k == 0 {
			cfg.Send = sendFrames
		}
		s, err := xsk.Open(cfg)
		if err != nil {
			return explain("open a socket of AF_XDP", err)
		}
		d.queues = append(d.queues, queue{
			socket: s, taken: make([]uint64, 0, slots), enough: max(1, min(slots/8, maxEnough)),
		})
	}
	return nil
}

// reopenSockets begins anew where some of the sockets are bound.
func (d *door) reopenSockets() error {
	if err := d.closeSockets(); err != nil {
		return err
	}
	return d.openSockets()
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

// drops returns how many frames the kernel had no room for.
func (d *door) drops() (n uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.open {
		return d.dropped
	}
	for _, q := range d.queues {
		n += q.socket.Drops()
	}
	return n
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

// leave undoes enter. The program goes first, and with it the frames that come.
func (d *door) leave() error {
	plugged := d.nic.hasCarrier()
	var errs []error
	if d.program != nil {
		errs = append(errs, d.program.Close())
	}
	errs = append(errs, d.closeSockets(), d.Control(d.nic.restore))
	if plugged {
		d.nic.awaitCarrier() // else who uses the interface next would be the one to wait
	}
	d.nic.close()
	d.mu.Lock()
	defer d.mu.Unlock()
	fd := d.fd
	d.fd = -1
	return errors.Join(append(errs, unix.Close(fd))...)
}

// closeSockets closes the queues' sockets. Views of frames keep their addresses, if there are any.
func (d *door) closeSockets() error {
	dropped := d.drops()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropped, d.open = dropped, false
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
