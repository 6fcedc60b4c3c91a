package fabric

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Device is a *Switch or a *Hub: links and cables are plugged into it.
type Device interface{ plug() *device }

// Switch is a VLAN-aware learning switch. Make one by Fabric.AddSwitch.
type Switch struct {
	device
	learning *l2switch.Switch
}

// Hub is a repeater: every station on it sees every frame, tags as they are. Make one by
// Fabric.AddHub.
type Hub struct{ device }

// device is what switches and hubs have in common. Its methods but plug need the lock.
type device struct {
	f    *Fabric
	name string
	fwd  forwarder
	ends []end // by port number
}

// forwarder decides where frames go: a *l2switch.Switch or a *l2switch.Hub.
type forwarder interface {
	AddPort(l2switch.Port) (number int, err error)
	RemovePort()
	SetUp(port int, up bool)
	Decide(now monotime.Time, in int, f *transport.Frame, out []l2switch.Egress) ([]l2switch.Egress, l2switch.Verdict)
	Count(l2switch.Verdict)
	Reach(in int, tag transport.OptionalTag, out []l2switch.Egress) []l2switch.Egress
}

// end is what is plugged into a port: a link, another device, or nothing after the link was closed.
type end struct {
	link *Link
	to   *device
	port int // of to
}

// AddSwitch adds a switch. The name is for messages; "" means switch0, switch1, ...
func (f *Fabric) AddSwitch(name string) *Switch {
	s := l2switch.New(f.switchConfig())
	return &Switch{f.newDevice("switch", name, s), s}
}

// AddHub adds a repeater. The name is for messages; "" means hub0, hub1, ...
func (f *Fabric) AddHub(name string) *Hub {
	return &Hub{f.newDevice("hub", name, new(l2switch.Hub))}
}

func (f *Fabric) newDevice(kind, name string, forwards forwarder) device {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == "" {
		name = fmt.Sprintf("%s%d", kind, f.devices)
	}
	f.devices++
	return device{f: f, name: name, fwd: forwards}
}

func (d *device) plug() *device { return d }

// addPort adds a port with e plugged in. A hub ignores p.
func (d *device) addPort(p Port, e end) (number int, err error) {
	if number, err = d.fwd.AddPort(l2switch.Port(p)); err != nil {
		return 0, err
	}
	for _, vid := range slices.Concat(p.VIDs, p.Untagged) {
		d.f.named[vid] = true
	}
	d.f.named[cmp.Or(p.PVID, l2switch.DefaultPVID)] = true
	d.ends = append(d.ends, e)
	return number, nil
}

// removePort removes the port that was added last.
func (d *device) removePort() {
	d.ends = d.ends[:len(d.ends)-1]
	d.fwd.RemovePort()
}

// SwitchCounters count the frames that a switch received: Forwarded to the learned port, Flooded or
// Multicast to the whole VID, Dropped… by cause; and the addresses that it Learned and Moved.
type SwitchCounters = l2switch.Counters

// Counters returns the switch's counters, from when it was added.
func (s *Switch) Counters() SwitchCounters {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.learning.Counters()
}

// Flush makes the switch forget all addresses: it floods until it has learned them again.
func (s *Switch) Flush() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.learning.Flush()
}

// String returns the switch's name.
func (s *Switch) String() string { return s.name }

// String returns the hub's name.
func (h *Hub) String() string { return h.name }
