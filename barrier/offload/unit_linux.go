package offload

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/barrier/offload/internal/program"
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/transport"
)

const (
	// slots is how many numbers of groups are counted at one time; others run in the process.
	slots = 64
	// rest is how long a slot is not used again: the program may be in the middle of a frame.
	rest = 100 * time.Millisecond
)

// Unit is a program on an interface, and the slots that it shares with this process.
type Unit struct {
	mac     transport.MAC
	index   int    // of the interface
	netns   string // that the interface is in
	program *program.Program
	carrier *afxdp.Carrier

	mu    sync.Mutex // guards what follows
	state [slots]slotState
	open  bool
}

// slotState is who has a slot.
type slotState struct {
	keys   []slot.Key // of its members; nil: it is free
	closed monotime.Time
}

// Open loads the program and attaches it to an interface: in the driver if it can, else in the
// kernel's generic code. It counts nothing yet. Many NICs start anew then: Open waits until the
// carrier is back, five seconds at most.
//
// Errors: ErrOccupied; transport.ErrPermission, ErrNoInterface, ErrNotSupported.
func Open(ifname string) (*Unit, error) {
	u, err := open(ifname)
	if err != nil {
		return nil, fmt.Errorf("offload %s: %w", ifname, err)
	}
	return u, nil
}

func open(ifname string) (*Unit, error) {
	ifi, err := net.InterfaceByName(ifname)
	if _, unknown := errors.AsType[syscall.Errno](err); unknown { // the system did not say whether there is one
		return nil, explain("look for the interface", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transport.ErrNoInterface, err)
	}
	carrier, err := afxdp.OpenCarrier(ifi)
	if err != nil {
		return nil, err
	}
	u, err := openOn(ifi, carrier)
	if err != nil {
		return nil, errors.Join(err, carrier.Close())
	}
	return u, nil
}

// openOn opens a unit that has the carrier for its own.
func openOn(ifi *net.Interface, carrier *afxdp.Carrier) (*Unit, error) {
	mac, err := afpacket.AddressOf(ifi)
	if err != nil {
		return nil, err
	}
	p, err := program.Load(slots)
	if err != nil {
		return nil, explainLoad(err, afxdp.HasCapability(unix.CAP_PERFMON))
	}
	await := carrier.Watch()
	err = attach(p, ifi)
	await() // else members would be silent in the first barrier
	if err != nil {
		explained := explain("attach the XDP program", err)
		if occupied(err) {
			explained = fmt.Errorf("%w%s", explained, heldBy(afxdp.Holder(ifi.Index)))
		}
		return nil, errors.Join(explained, p.Close(), p.Unmap())
	}
	return &Unit{
		mac: mac, index: ifi.Index, netns: afpacket.Namespace(), program: p, carrier: carrier, open: true,
	}, nil
}

// attach attaches the program, in the driver if it can. On a veth that needs a program at the other
// end, too. What is in the way of both is said of the second.
func attach(p *program.Program, ifi *net.Interface) error {
	if driverOf(ifi.Name) != "veth" {
		if err := p.Attach(ifi.Index, true); err == nil {
			return nil
		}
	}
	return p.Attach(ifi.Index, false)
}

// driverOf returns the name of an interface's driver, or "" if it does not say.
func driverOf(ifname string) string {
	tool, err := room.NewEthtool()
	if err != nil {
		return ""
	}
	defer tool.Close()
	name, _ := tool.DriverName(ifname)
	return name
}

// MAC returns the interface's address.
func (u *Unit) MAC() transport.MAC { return u.mac }

// Interface returns the index of the interface, and the network namespace that it was in when the
// unit was opened.
func (u *Unit) Interface() (index int, namespace string) { return u.index, u.netns }

// Add takes a slot for members, which it opens at a generation. It is for package barrier.
//
// Errors: transport.ErrClosed; ErrFull; ErrTaken.
func (u *Unit) Add(c *slot.Config) (*slot.Slot, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.open {
		return nil, transport.ErrClosed
	}
	i, ok := u.free(clock.Now())
	if !ok {
		return nil, ErrFull
	}
	s := u.program.Slot(i)
	s.Configure(c)
	keys := make([]slot.Key, 0, len(c.Members))
	for _, m := range c.Members {
		key := c.Key(m.Node)
		if err := u.program.AddMember(key, m.At(i)); err != nil {
			u.remove(keys)
			if errors.Is(err, ebpf.ErrKeyExist) {
				return nil, ErrTaken
			}
			return nil, fmt.Errorf("offload: add member %d: %w", m.Node, err)
		}
		keys = append(keys, key)
	}
	u.state[i].keys = keys
	s.Open(c.Generation)
	return s, nil
}

func (u *Unit) free(now monotime.Time) (i int, ok bool) {
	for i := range u.state {
		if f := &u.state[i]; f.keys == nil && (f.closed.IsZero() || now.Sub(f.closed) >= rest) {
			return i, true
		}
	}
	return 0, false
}

// Remove gives back a slot that is closed. Behind the last one of a unit that is closed nobody uses
// its memory any more.
func (u *Unit) Remove(s *slot.Slot) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.state {
		f := &u.state[i]
		if f.keys == nil || u.program.Slot(i) != s {
			continue
		}
		if u.open {
			u.remove(f.keys)
		}
		*f = slotState{closed: clock.Now()}
		if !u.open && !u.inUse() {
			_ = u.program.Unmap() // it is mapped
		}
		return
	}
}

// inUse reports whether somebody has a slot. The caller holds mu.
func (u *Unit) inUse() bool {
	return slices.ContainsFunc(u.state[:], func(f slotState) bool { return f.keys != nil })
}

func (u *Unit) remove(keys []slot.Key) {
	for _, key := range keys {
		_ = u.program.RemoveMember(key) // it is there
	}
}

// Close takes the program off the interface. Barriers of groups that still use the unit go on in
// the processes. Many NICs start anew then: Close waits until the carrier is back, five seconds at
// most. Further calls do nothing.
func (u *Unit) Close() error {
	await, err := u.close()
	if await == nil {
		return nil
	}
	await() // without the lock: barriers go on, as far as the NIC lets them
	if err = errors.Join(err, u.carrier.Close()); err != nil {
		return fmt.Errorf("offload: close: %w", err)
	}
	return nil
}

// close takes the program off, and returns what waits for the carrier; nil if the unit is closed.
func (u *Unit) close() (await func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.open {
		return nil, nil
	}
	u.open = false
	await = u.carrier.Watch()
	err = u.program.Close()
	if !u.inUse() {
		err = errors.Join(err, u.program.Unmap())
	}
	return await, err
}
