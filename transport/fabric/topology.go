package fabric

import (
	"fmt"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"
)

// Device is what links and cables are plugged into: a *Switch or a *Hub.
type Device interface{ plug() *device }

// Switch is a VLAN-aware learning switch. Make one by Fabric.AddSwitch.
type Switch struct{ d *device }

// Hub is a repeater: everyone on it sees every frame, tags as they are. Make one by Fabric.AddHub.
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

// end is what is plugged into a port: a link or another device. After the link closed it is neither.
type end struct {
	link *Link
	to   *device
	port int // of to
}

// AddSwitch adds a switch. The name is for messages; "" stands for switch and its number.
func (f *Fabric) AddSwitch(name string) *Switch {
	return &Switch{f.add("switch", name, &device{sw: l2switch.New(f.switchConfig())})}
}

// AddHub adds a repeater. The name is for messages; "" stands for hub and its number.
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

// addPort adds a port with e plugged in. A hub has no use for p. The lock is held.
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

// removePort takes the port that was added last away again.
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

// Cable joins two devices.
type Cable struct {
	f    *Fabric
	a, b end // to and port alone
}

// Connect joins two devices by a cable whose both ends are ports like p; the zero Port carries everything.
// An end at a hub has no VLANs, and ignores p.
//
// Frames are forwarded while the sender calls Send, so a loop would not end: a cable that closes one, for
// any VID, is refused with a *LoopError and not connected. A cable that is down counts all the same.
// Other errors: a VID out of range (transport.ErrBadTag), too many ports, devices of two fabrics.
func (f *Fabric) Connect(a, b Device, p Port) (*Cable, error) {
	da, db := a.plug(), b.plug()
	if da.f != f || db.f != f {
		return nil, fmt.Errorf("%v: connect %s - %s: they are parts of %v and %v (want both of %v)", f, da.name, db.name, da.f, db.f, f)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.connect(da, db, p)
	if err != nil {
		return nil, fmt.Errorf("%v: connect %s - %s: %w", f, da.name, db.name, err)
	}
	return c, nil
}

func (f *Fabric) connect(a, b *device, p Port) (*Cable, error) {
	pa, err := a.addPort(p, end{to: b})
	if err != nil {
		return nil, err
	}
	pb, err := b.addPort(p, end{to: a, port: pa})
	if err != nil {
		a.removePort()
		return nil, err
	}
	a.ends[pa].port = pb
	if err := f.findLoop(a.ends[pa]); err != nil {
		b.removePort()
		a.removePort()
		return nil, err
	}
	return &Cable{f: f, a: end{to: a, port: pa}, b: end{to: b, port: pb}}, nil
}

// SetUp cuts the cable, or heals it. Both switches forget what was behind it; others do not notice.
func (c *Cable) SetUp(up bool) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.a.to.setUp(c.a.port, up)
	c.b.to.setUp(c.b.port, up)
}

// String names c by its ends: leaf0 - top1.
func (c *Cable) String() string { return c.a.to.name + " - " + c.b.to.name }

// Station says how a link is attached. The zero Station works.
type Station struct {
	// MAC is the link's address. Zero: the next free one of 02:00:00:00:00:01, :02, ...
	MAC transport.MAC
	// Port is the switch's side of it. Hubs ignore it.
	Port Port
}

// Attach plugs a new link into d. Errors: an address that is a group or in use in this fabric, a VID out of
// range (transport.ErrBadTag), too many ports.
func (f *Fabric) Attach(d Device, st Station) (*Link, error) {
	dev := d.plug()
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := f.attach(dev, st)
	if err != nil {
		return nil, fmt.Errorf("%v: attach to %s: %w", f, dev.name, err)
	}
	return l, nil
}

func (f *Fabric) attach(dev *device, st Station) (*Link, error) {
	if dev.f != f {
		return nil, fmt.Errorf("it is part of %v (want one of %v)", dev.f, f)
	}
	mac := st.MAC
	if mac.IsZero() {
		mac = f.freeMAC()
	}
	if mac.IsMulticast() {
		return nil, fmt.Errorf("MAC %v is a group address (want one with an even first byte)", mac)
	}
	if f.macs[mac] {
		return nil, fmt.Errorf("MAC %v is another link's (want each once in a fabric)", mac)
	}
	l := newLink(f, mac)
	port, err := dev.addPort(st.Port, end{link: l})
	if err != nil {
		return nil, err
	}
	l.dev, l.port = dev, port
	f.macs[mac] = true
	f.attached++
	return l, nil
}

// freeMAC returns the next locally administered address. The lock is held.
func (f *Fabric) freeMAC() transport.MAC {
	for n := uint32(f.attached) + 1; ; n++ {
		mac := transport.MAC{2, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		if !f.macs[mac] {
			return mac
		}
	}
}

// Links attaches n links with the zero Station. Errors: too many for the switch's ports.
func (s *Switch) Links(n int) ([]*Link, error) { return s.d.links(s, n) }

// Links attaches n links with the zero Station. Errors: too many for the hub's ports.
func (h *Hub) Links(n int) ([]*Link, error) { return h.d.links(h, n) }

func (d *device) links(self Device, n int) ([]*Link, error) {
	links := make([]*Link, 0, max(n, 0))
	for range n {
		l, err := d.f.Attach(self, Station{})
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return links, nil
}

// SwitchCounters say what became of the frames that a switch took in: Forwarded to the learned port, Flooded
// or Multicast to the whole VID, or Dropped… by cause; and how many addresses were Learned and Moved.
type SwitchCounters = l2switch.Counters

// Counters returns what passed through the switch since it was added.
func (s *Switch) Counters() SwitchCounters {
	s.d.f.mu.Lock()
	defer s.d.f.mu.Unlock()
	return s.d.sw.Counters()
}

// Flush makes the switch forget all addresses: what comes next floods until they are learned anew.
func (s *Switch) Flush() {
	s.d.f.mu.Lock()
	defer s.d.f.mu.Unlock()
	s.d.sw.Flush()
}

// String returns the switch's name.
func (s *Switch) String() string { return s.d.name }

// String returns the hub's name.
func (h *Hub) String() string { return h.d.name }
