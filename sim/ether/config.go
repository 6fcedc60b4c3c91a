package ether

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/vlan/topology"
)

// Config of a network. All but Topology may be zero.
type Config struct {
	Topology *topology.Topology // with one VLAN at least: frames are tagged
	Seed     uint64             // of the random generator: how late hosts are, how far clocks are off

	Queue         int           // bytes that may wait at a switch's port; 0: DefaultQueue
	Window        int           // payload bytes that a flow has in flight; 0: DefaultWindow
	Congestion    Congestion    // of all flows
	HostLatency   time.Duration // from a program to its cable, or back; 0: DefaultHostLatency
	SwitchLatency time.Duration // from a frame's last bit to the queue that it leaves by; 0: DefaultSwitchLatency
	Ageing        time.Duration // of learned addresses; 0: 300 s

	// Exact switches randomness off: all clocks are right, and no host is late. It is for comparing
	// with arithmetic.
	Exact bool
}

// Congestion is a flow's congestion control.
type Congestion uint8

// The congestion controls. Linux has had CUBIC as its default since 2.6.19.
const (
	NewReno Congestion = iota // RFC 5681, RFC 6582
	Cubic                     // RFC 9438, with the backoff to 0.8 of the window that Linux 2.6 had
)

// Congestions are all of them.
var Congestions = []Congestion{NewReno, Cubic}

// String names c.
func (c Congestion) String() string {
	switch c {
	case NewReno:
		return "newreno"
	case Cubic:
		return "cubic"
	}
	return fmt.Sprintf("Congestion(%d)", uint8(c))
}

// Validate returns what is wrong with c, or nil.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

// withDefaults returns c with every zero field set, and what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	c.Queue = cmp.Or(c.Queue, DefaultQueue)
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.HostLatency = cmp.Or(c.HostLatency, DefaultHostLatency)
	c.SwitchLatency = cmp.Or(c.SwitchLatency, DefaultSwitchLatency)
	switch {
	case c.Topology == nil:
		return c, errors.New("no topology")
	case c.Queue < FullFrame || c.Queue > MaxQueue:
		return c, fmt.Errorf("queue of %d bytes (want %d, a full frame, to %d)", c.Queue, FullFrame, MaxQueue)
	case c.Window < Payload || c.Window > MaxWindow:
		return c, fmt.Errorf("window of %d bytes (want %d, what a frame carries, to %d)", c.Window, Payload, MaxWindow)
	case c.Congestion > Cubic:
		return c, fmt.Errorf("congestion control %v (want one of %v)", c.Congestion, Congestions)
	case c.HostLatency < 0 || c.HostLatency > maxLatency || c.SwitchLatency < 0 || c.SwitchLatency > maxLatency:
		return c, fmt.Errorf("latencies of %v and %v (want 0 to %v)", c.HostLatency, c.SwitchLatency, maxLatency)
	}
	return c, c.checkTopology()
}

func (c *Config) checkTopology() error {
	t := c.Topology
	if err := t.Validate(); err != nil {
		return err
	}
	if len(t.VLANs) == 0 {
		return errors.New("the topology has no VLAN (want one at least: frames are tagged)")
	}
	check := func(name string, r topology.Rate) error {
		if r < MinRate || r > MaxRate {
			return fmt.Errorf("%s: a rate of %v (want %v to %v)", name, r, MinRate, MaxRate)
		}
		return nil
	}
	for _, h := range t.Hosts {
		if err := check("host "+h.Name, h.Rate); err != nil {
			return err
		}
	}
	for i, l := range t.Links {
		if err := check("link "+t.LinkName(i), l.Rate); err != nil {
			return err
		}
	}
	return nil
}
