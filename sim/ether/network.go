package ether

import (
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/internal/mono"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// Config of a network. All but Topology may be zero.
type Config struct {
	Topology *vlan.Topology
	Seed     uint64 // of what is left to chance: how late hosts are, how far clocks are off

	Queue         int           // bytes that may wait at a switch's port; 0: DefaultQueue
	Window        int           // payload bytes that a flow has on its way; 0: DefaultWindow
	HostLatency   time.Duration // from a program to its cable, and back; 0: DefaultHostLatency
	SwitchLatency time.Duration // from the last bit in to the queue out; 0: DefaultSwitchLatency
	Ageing        time.Duration // of learned addresses; 0: l2switch.DefaultAgeing

	// Exact leaves nothing to chance: all clocks are right, and no host is late. For tests against arithmetic.
	Exact bool
}

func (c Config) withDefaults() (Config, error) {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&c.Queue, DefaultQueue)
	set(&c.Window, DefaultWindow)
	if c.HostLatency == 0 {
		c.HostLatency = DefaultHostLatency
	}
	if c.SwitchLatency == 0 {
		c.SwitchLatency = DefaultSwitchLatency
	}
	switch {
	case c.Topology == nil:
		return c, fmt.Errorf("no topology")
	case c.Queue < FullFrame || c.Queue > maxQueue:
		return c, fmt.Errorf("queue of %d bytes (want %d, a full frame, to %d)", c.Queue, FullFrame, maxQueue)
	case c.Window < Payload || c.Window > maxWindow:
		return c, fmt.Errorf("window of %d bytes (want %d, a full frame's, to %d)", c.Window, Payload, maxWindow)
	case c.HostLatency < 0 || c.SwitchLatency < 0:
		return c, fmt.Errorf("a latency of less than nothing")
	}
	return c, nil
}

// Network is switches, cables and hosts. It belongs to the goroutine of its queue.
type Network struct {
	queue    *sim.Queue
	config   Config
	chance   sim.Chance
	switches []node
	hosts    []host
	lines    []line // two per cable, from its A and from its B, in the order of the cables: hosts, then links
	flows    []*Flow
	counters Counters

	header transport.Frame // of the frame that a switch looks at
	egress []l2switch.Egress
}

// node is a switch and what leads away from it.
type node struct {
	*l2switch.Switch
	lines []*line // by port
}

// New makes a network on a queue. Its switches know no addresses yet; its hosts send on the topology's first VID.
func New(q *sim.Queue, c Config) (*Network, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	t := c.Topology
	switches, cables, err := wire(t, l2switch.Config{Ageing: c.Ageing})
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	if len(t.VLANs) == 0 {
		return nil, fmt.Errorf("network: the topology has no VLAN (want one at least: frames are tagged)")
	}
	n := &Network{queue: q, config: c, chance: sim.Chance(c.Seed), hosts: make([]host, len(t.Hosts)), lines: make([]line, 2*len(cables))}
	for _, s := range switches {
		n.switches = append(n.switches, node{s, make([]*line, s.Ports())})
	}
	for i := range n.hosts {
		n.hosts[i] = host{net: n, number: i, mac: address(i), vids: slices.Repeat([]transport.VID{t.VLANs[0].VID}, len(t.Hosts))}
	}
	for i, cable := range cables {
		if !(cable.rate >= minRate && cable.rate <= maxRate) {
			return nil, fmt.Errorf("network: cable %d: rate of %g bit/s (want %g to %g)", i, float64(cable.rate), float64(minRate), float64(maxRate))
		}
		n.lay(&n.lines[2*i], cable.a, cable.b, cable.rate)
		n.lay(&n.lines[2*i+1], cable.b, cable.a, cable.rate)
	}
	return n, nil
}

// Rates that an instant is fine enough for, and a run not too short.
const (
	minRate = vlan.Mbps
	maxRate = 1000 * vlan.Gbps
)

// lay makes one direction of a cable.
func (n *Network) lay(l *line, from, to socket, rate vlan.Rate) {
	byteTime := 8e15 / float64(rate)
	if !n.config.Exact {
		off := float64(n.chance.UpTo(2*clockPPM*1000))/1000 - clockPPM // in millionths
		byteTime *= 1 + off/1e6
	}
	l.byteTime = int64(byteTime)
	if from.port == hostPort {
		n.hosts[from.device].line = l
		l.latency += n.config.HostLatency
	} else {
		n.switches[from.device].lines[from.port] = l
		l.limit = int64(n.config.Queue) * l.byteTime
	}
	if to.port == hostPort {
		h := &n.hosts[to.device]
		l.latency += n.config.HostLatency
		l.arrive = func() {
			f := l.flying.pop()
			h.receive(&f)
		}
	} else {
		s := &n.switches[to.device]
		l.latency += n.config.SwitchLatency
		l.arrive = func() {
			f := l.flying.pop()
			n.forward(s, to.port, &f)
		}
	}
}

// send queues a frame on a line.
func (n *Network) send(l *line, at mono.Time, f *frame) {
	if arrival, ok := l.send(at, f); ok {
		n.queue.At(arrival, l.arrive)
	}
}

// forward has a switch decide where a frame leaves.
func (n *Network) forward(s *node, port int, f *frame) {
	now := n.queue.Now()
	n.header = transport.Frame{Dst: f.dst, Src: f.src, Tagged: true, Tag: transport.Tag{VID: f.vid}}
	n.egress = s.Forward(now, port, &n.header, n.egress[:0])
	if len(n.egress) == 0 {
		n.counters.Filtered++
		return
	}
	n.counters.Copies += uint64(len(n.egress) - 1)
	for i := range n.egress {
		n.send(s.lines[n.egress[i].Port], now, f)
	}
}

// SetVID changes what host at sends with to host peer, from now on. What peer sends with to it stays.
func (n *Network) SetVID(at, peer int, vid transport.VID) { n.hosts[at].vids[peer] = vid }

// SetRoute changes both directions of a pair at once.
func (n *Network) SetRoute(p vlan.Pair, vid transport.VID) {
	n.SetVID(p.A, p.B, vid)
	n.SetVID(p.B, p.A, vid)
}

// Apply sets all pairs' VIDs to those of a plan, which must have as many nodes as there are hosts.
func (n *Network) Apply(p *vlan.Plan) {
	for a := range n.hosts {
		for b := range a {
			n.SetRoute(vlan.PairOf(a, b), p.PairVID(a, b))
		}
	}
}
