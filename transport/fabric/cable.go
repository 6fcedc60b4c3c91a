package fabric

import "fmt"

// Cable joins two devices.
type Cable struct {
	f    *Fabric
	a, b end // with no link
}

// Connect joins two devices by a cable. Both its ends are ports like p; the zero Port carries
// everything, and a hub ignores p.
//
// A frame is forwarded during the sender's Send, so in a loop it would never end. A cable that
// closes a loop for any VID is refused with a *LoopError; cables that are down count too.
// Other errors: a VID out of range (transport.ErrBadTag), too many ports, devices of two fabrics.
func (f *Fabric) Connect(a, b Device, p Port) (*Cable, error) {
	da, db := a.plug(), b.plug()
	if da.f != f || db.f != f {
		return nil, fmt.Errorf("%v: connect %s - %s: they are parts of %v and %v (want both of %v)",
			f, da.name, db.name, da.f, db.f, f)
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
		a.removePort(pa)
		return nil, err
	}
	a.ends[pa].port = pb
	if err := f.findLoop(a.ends[pa]); err != nil {
		b.removePort(pb)
		a.removePort(pa)
		return nil, err
	}
	return &Cable{f: f, a: end{to: a, port: pa}, b: end{to: b, port: pb}}, nil
}

// SetUp cuts the cable or mends it. Both switches forget the addresses behind it; others do not
// notice.
func (c *Cable) SetUp(up bool) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.a.to.fwd.SetUp(c.a.port, up)
	c.b.to.fwd.SetUp(c.b.port, up)
}

// String names c by its ends: leaf0 - top1.
func (c *Cable) String() string { return c.a.to.name + " - " + c.b.to.name }
