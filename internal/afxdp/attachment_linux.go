package afxdp

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/xdpprog"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// Config says which frames the sockets get, and how.
type Config struct {
	EtherType   transport.EtherType
	MAC         transport.MAC // frames for this station, and for groups
	Promiscuous bool          // for others, too
	Mode        xsk.Mode
	Slots       int  // received frames that a socket holds: a power of two
	NoVLANs     bool // leave a NIC that takes tags off as it is

	// Scopes are of which messages the frames may be one; none means all.
	Scopes []xdpprog.Scope
	// Shared is for sockets that another process is given.
	Shared bool
}

// Attachment is the link's program on an interface, a socket for each of its receive queues, and
// what is changed of the NIC. The first socket sends, too.
type Attachment struct {
	Mode     xsk.Mode
	Fallback string // why not a better mode

	cfg     Config
	program *xdpprog.Program
	sockets []*xsk.Socket
	chunk   int // bytes of each
	queues  int // receive queues that the interface has
	nic     nic
	plugged bool // the NIC had its carrier before Open, or Detach
}

// ChunkFor returns the size of chunks for an interface's frames, in the mode that is asked for.
func ChunkFor(ifi *afpacket.Interface, asked xsk.Mode) (int, error) {
	frame := ifi.MTU + transport.MaxHeaderLen
	if asked == xsk.ZeroCopy || asked == xsk.ModeAuto && mayZeroCopy(ifi.Index) {
		if chunk, ok := xsk.ChunkFor(frame, true); ok {
			return chunk, nil
		}
	}
	chunk, ok := xsk.ChunkFor(frame, false)
	if !ok {
		most := xsk.MaxFrame(false) - transport.MaxHeaderLen
		return 0, fmt.Errorf("the interface's MTU is %d, and AF_XDP's frames must fit a page: %w "+
			"(on all nodes: ip link set %s mtu %d; or use link ring)",
			ifi.MTU, &transport.SizeError{Size: ifi.MTU, Max: most}, ifi.Name, most)
	}
	return chunk, nil
}

// mayZeroCopy reports whether an interface's driver may have zero-copy.
func mayZeroCopy(index int) bool {
	known := DriverMode(index)
	return known == xsk.ZeroCopy || known == xsk.ModeAuto
}

// Open has the program send the interface's frames to sockets, with chunks as ChunkFor says. If it
// fails, nothing stays.
func Open(ifi *afpacket.Interface, chunk int, cfg Config) (*Attachment, error) {
	a := &Attachment{cfg: cfg, chunk: chunk, queues: ifi.Driver.RxQueues}
	if err := a.open(ifi); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Attachment) open(ifi *afpacket.Interface) (err error) {
	if err := a.nic.open(ifi.Index, ifi.Name); err != nil {
		return err
	}
	a.plugged = a.nic.hasCarrier()
	a.program, err = xdpprog.Load(xdpprog.Config{
		EtherType: a.cfg.EtherType, MAC: a.cfg.MAC, Promiscuous: a.cfg.Promiscuous, Queues: a.queues,
		Scopes: a.cfg.Scopes,
	})
	if err != nil {
		return Explain("load the XDP program", err)
	}
	if err := a.openSockets(); err != nil {
		return err
	}
	if err := a.attach(ifi); err != nil {
		return err
	}
	if a.cfg.Shared {
		if err := a.mayHandOver(); err != nil {
			return err
		}
	}
	if !a.cfg.NoVLANs { // by the one that holds the program: another Open may fail beside this one
		if err := a.nic.keepTags(); err != nil {
			return err
		}
	}
	if a.plugged {
		a.nic.awaitCarrier()
	}
	makeRoom(a.sockets[0].FD, ifi.MTU)
	for k, s := range a.sockets {
		if err := a.program.SetSocket(k, s.FD); err != nil {
			return Explain("hand the program a socket", err)
		}
	}
	return nil
}

// openSockets opens a socket for each receive queue.
func (a *Attachment) openSockets() error {
	for k := range a.queues {
		cfg := xsk.ConfigOf(k, a.chunk, a.cfg.Slots)
		cfg.Shared = a.cfg.Shared
		s, err := xsk.Open(cfg)
		if err != nil {
			return Explain("open a socket of AF_XDP", err)
		}
		a.sockets = append(a.sockets, s)
	}
	return nil
}

// reopenSockets begins anew where some of the sockets are bound.
func (a *Attachment) reopenSockets() error {
	if err := a.closeSockets(); err != nil {
		return err
	}
	return a.openSockets()
}

func (a *Attachment) closeSockets() error {
	var errs []error
	for _, s := range a.sockets {
		errs = append(errs, s.Discard())
	}
	a.sockets = nil
	return errors.Join(errs...)
}

// makeRoom lets a socket have all its frames under way: each takes the next power of two, and the
// kernel's own header. Without it the kernel stops at 200 KB.
func makeRoom(fd, mtu int) {
	const overhead = 512
	want := xsk.SendFrames * (1<<bits.Len(uint(mtu+overhead)) + overhead)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, want) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, want)
	}
}

// Queues returns how many receive queues the interface has.
func (a *Attachment) Queues() int { return a.queues }

// Chunk returns how many bytes a frame's memory has.
func (a *Attachment) Chunk() int { return a.chunk }

// TakeSockets returns the sockets, by receive queue. They are the caller's from now on.
func (a *Attachment) TakeSockets() []*xsk.Socket {
	sockets := a.sockets
	a.sockets = nil
	return sockets
}

// Detach gives the NIC its settings back, and takes the program off the interface: no more frames
// come. The settings are first: while the program is there it keeps others off the interface, and
// behind it they would be changed under the next one. It waits for the carrier: else the next one
// would have to.
func (a *Attachment) Detach() error {
	if a.program == nil || !a.program.Attached() {
		return nil
	}
	a.plugged = a.nic.hasCarrier()
	err := errors.Join(a.nic.restore(), a.program.Detach())
	if a.plugged {
		a.nic.awaitCarrier()
	}
	return errors.Join(err, a.nic.close())
}

// Close undoes Open, but for sockets that were taken: those are to be closed before.
func (a *Attachment) Close() error {
	err := errors.Join(a.closeSockets(), a.Detach(), a.nic.close())
	if a.program != nil {
		err = errors.Join(err, a.program.Close())
		a.program = nil
	}
	return err
}
