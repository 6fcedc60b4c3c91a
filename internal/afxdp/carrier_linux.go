package afxdp

import (
	"net"
	"time"
)

// Carrier is that of an interface's NIC. Many NICs start anew when a program is attached or
// removed, and have none meanwhile, for seconds.
type Carrier struct {
	// Has reports whether frames can leave the NIC. Tests have one of their own.
	Has func() bool

	nic nic
}

// OpenCarrier looks for the carrier of an interface in this thread's namespace.
func OpenCarrier(ifi *net.Interface) (*Carrier, error) {
	c := new(Carrier)
	if err := c.nic.open(ifi.Index, ifi.Name); err != nil {
		return nil, err
	}
	c.Has = c.nic.hasCarrier
	return c, nil
}

// Watch is for who is about to change what the NIC runs. What it returns waits, after that, until
// the NIC has its carrier again; for nothing if it has none now.
func (c *Carrier) Watch() (await func()) {
	if !c.Has() {
		return func() {}
	}
	return func() { awaitCarrier(c.Has) }
}

// Close closes what it takes to look.
func (c *Carrier) Close() error { return c.nic.close() }

// carrierTime is how long a NIC may take to have its carrier back.
const carrierTime = 5 * time.Second

// awaitCarrier waits until a NIC has its carrier again: many start anew when a program is attached
// or removed, or a setting is changed.
func awaitCarrier(has func() bool) {
	for start := time.Now(); !has() && time.Since(start) < carrierTime; {
		time.Sleep(5 * time.Millisecond)
	}
}
