package fabric

import (
	"fmt"

	"github.com/rawlane/rawlane/internal/l2switch"
)

// Device is a *Switch or a *Hub: links and cables are plugged into it.
type Device interface{ plug() *device }

// Switch is a VLAN-aware learning switch. Make one by Fabric.AddSwitch.
type Switch struct{ d *device }

// Hub is a repeater: every station on it sees every frame, tags as they are. Make one by
// Fabric.AddHub.
type Hub struct{ d *device }

func (s *Switch) plug() *device { return s.d }
func (h *Hub) plug() *device    { return h.d }

// device is a switch or a hub; one of the two is nil.
type device struct {
	f    *Fabric
	name string
	sw   *l2switch.Switch
	hub  *l2switch.Hub
	ends []end // by port number
}

// end is what is plugged into a port: a link, another device, or nothing after the link was closed.
type end struct {
	link *Link
	to   *device
	port int // of to
}

// AddSwitch adds a switch. The name is for messages; "" means switch0, switch1, ...
func (f *Fabric) AddSwitch(name string) *Switch {
	return &Switch{f.add("switch", name, &device{sw: l2switch.New(f.switchConfig())})}
}

// AddHub adds a repeater. The name is for messages; "" means hub0, hub1, ...
func (f *Fabric) AddHub(name string) *Hub {
	return &Hub{f.add("hub", name, &device{hub: new(l2switch.Hub)})}
}

func (f *Fabric) add(kind, name string, d *device) *device {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == "" {
		name = fmt.Sprintf("%s%d", kind, f.devices)
	}
	d.f, d.name = f, name
	f.devices++
	return d
}

// addPort adds a port with e plugged in. A hub ignores p. The lock is held.
func (d *device) addPort(p Port, e end) (number int, err error) {
	if d.hub != nil {
		if len(d.ends) >= l2switch.MaxPorts {
			return 0, fmt.Errorf("a hub has at most %d ports", l2switch.MaxPorts)
		}
		d.ends = append(d.ends, e)
		return d.hub.AddPort(), nil
	}
	cfg, err := p.config()
	if err != nil {
		return 0, err
	}
	if number, err = d.sw.AddPort(cfg); err != nil {
		return 0, err
	}
	for vid := range cfg.Modes {
		d.f.named[vid] = true
	}
	d.f.named[cfg.PVID] = true
	d.ends = append(d.ends, e)
	return number, nil
}

// removePort removes the port that was added last.
func (d *device) removePort() {
	d.ends = d.ends[:len(d.ends)-1]
	if d.hub != nil {
		d.hub.RemovePort()
	} else {
		d.sw.RemovePort()
	}
}

func (d *device) setUp(port int, up bool) {
	if d.hub != nil {
		d.hub.SetUp(port, up)
	} else {
		d.sw.SetUp(port, up)
	}
}

// SwitchCounters count the frames that a switch received: Forwarded to the learned port, Flooded or
// Multicast to the whole VID, Dropped… by cause; and the addresses that it Learned and Moved.
type SwitchCounters = l2switch.Counters

// Counters returns the switch's counters, from when it was added.
func (s *Switch) Counters() SwitchCounters {
	s.d.f.mu.Lock()
	defer s.d.f.mu.Unlock()
	return s.d.sw.Counters()
}

// Flush makes the switch forget all addresses: it floods until it has learned them again.
func (s *Switch) Flush() {
	s.d.f.mu.Lock()
	defer s.d.f.mu.Unlock()
	s.d.sw.Flush()
}

// String returns the switch's name.
func (s *Switch) String() string { return s.d.name }

// String returns the hub's name.
func (h *Hub) String() string { return h.d.name }
