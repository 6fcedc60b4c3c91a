package fabric

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Station is how a link is attached. The zero Station works.
type Station struct {
	// MAC is the link's address. Zero means the next free one of 02:00:00:00:00:01, :02, ...
	MAC transport.MAC
	// Port is the switch's port. Hubs ignore it.
	Port Port
}

// Attach plugs a new link into d. Errors: an address that is a group's or in use in this fabric, a
// VID out of range (transport.ErrBadTag), too many ports.
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

// Links attaches n links with the zero Station, or none. Errors: too many for the device's ports.
func (d *device) Links(n int) ([]*Link, error) {
	links := make([]*Link, max(n, 0))
	for i := range links {
		var err error
		if links[i], err = d.f.Attach(d, Station{}); err != nil {
			for _, l := range links[:i] {
				_ = l.Close() // the first error is the one to report
			}
			return nil, err
		}
	}
	return links, nil
}
