package fabric

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/l2switch"
)

// Device is a *Switch or a *Hub: links and cables are plugged into it.
type Device interface{ plug() *device }

// Switch is a VLAN-aware learning switch. Make one by Fabric.AddSwitch.
type Switch struct{ device }

// Hub is a repeater: every station on it sees every frame, tags as they are. Make one by
// Fabric.AddHub.
type Hub struct{ device }

// device is what switches and hubs have in common. What is not exported needs the lock, but plug.
type device struct {
	f    *Fabric
	name string
	fwd  *l2switch.Switch // decides where frames go
	ends []end            // by port number
}

// end is what is plugged into a port: a link, another device, or nothing after the link was closed.
type end struct {
	link *Link
	to   *device
	port int // of to
}

// AddSwitch adds a switch. The name is for messages; "" means switch0, switch1, ...
func (f *Fabric) AddSwitch(name string) *Switch { return &Switch{f.newDevice("switch", name)} }

// AddHub adds a repeater. The name is for messages; "" means hub0, hub1, ...
func (f *Fabric) AddHub(name string) *Hub { return &Hub{f.newDevice("hub", name)} }

func (f *Fabric) newDevice(kind, name string) device {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == "" {
		name = fmt.Sprintf("%s%d", kind, f.devices)
	}
	f.devices++
	return device{f: f, name: name, fwd: l2switch.New(l2switch.Config{
		Ageing: cmp.Or(f.cfg.Ageing, l2switch.NeverAge), Addresses: f.cfg.Addresses, Repeater: kind == "hub",
	})}
}

func (d *device) plug() *device { return d }

// String returns the device's name.
func (d *device) String() string { return d.name }

// addPort adds a port with e plugged in. A hub ignores p.
func (d *device) addPort(p Port, e end) (number int, err error) {
	if number, err = d.fwd.AddPort(l2switch.Port(p)); err != nil {
		return 0, err
	}
	for _, vid := range slices.Concat(p.VIDs, p.Untagged) {
		d.f.named[vid] = true
	}
	d.f.named[cmp.Or(p.PVID, l2switch.DefaultPVID)] = true
	if number == len(d.ends) {
		d.ends = append(d.ends, e)
	} else {
		d.ends[number] = e // in the place of one that was removed
	}
	return number, nil
}

// removePort removes a port. A later one has its number.
func (d *device) removePort(number int) {
	d.ends[number] = end{}
	d.fwd.RemovePort(number)
}

// SwitchCounters count the frames that a switch received: Forwarded to the learned port, Flooded or
// Multicast to the whole VID, Dropped… by cause; and the addresses that it Learned and Moved.
type SwitchCounters = l2switch.Counters

// Counters returns the switch's counters, from when it was added.
func (s *Switch) Counters() SwitchCounters {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.fwd.Counters()
}

// Flush makes the switch forget all addresses: it floods until it has learned them again.
func (s *Switch) Flush() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.fwd.Flush()
}
