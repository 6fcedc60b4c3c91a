package ether

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/prng"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Network is switches, cables and hosts. It belongs to the goroutine of its queue.
type Network struct {
	queue    *sim.Queue
	config   Config
	rng      prng.Source
	switches []switchNode
	hosts    []host
	lines    []line // two of each cable: from its A, from its B
	flows    []*Flow
	count    Counters // without those that lines and switches count

	header transport.Frame // memory of forward
	egress []l2switch.Egress
}

// switchNode is a switch and its outgoing lines.
type switchNode struct {
	*l2switch.Switch
	lines []*line // by port
}

// New makes a network on a queue. Its switches have learned no addresses, and its hosts send all
// frames on the topology's first VID. The error says what is wrong with c.
func New(q *sim.Queue, c Config) (*Network, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	t := c.Topology
	switches, cables, err := build(t, l2switch.Config{Ageing: c.Ageing})
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	n := &Network{
		queue: q, config: c, rng: prng.Source(c.Seed),
		switches: make([]switchNode, len(switches)),
		hosts:    make([]host, len(t.Hosts)),
		lines:    make([]line, 2*len(cables)),
	}
	for i, s := range switches {
		n.switches[i] = switchNode{s, make([]*line, s.Ports())}
	}
	for i := range n.hosts {
		vids := slices.Repeat([]transport.VID{t.VLANs[0].VID}, len(t.Hosts))
		n.hosts[i] = host{net: n, number: i, mac: Address(i), vids: vids}
	}
	for i, c := range cables {
		n.addLine(&n.lines[2*i], c.a, c.b, c.rate)
		n.addLine(&n.lines[2*i+1], c.b, c.a, c.rate)
	}
	return n, nil
}

// addLine makes one direction of a cable.
func (n *Network) addLine(l *line, from, to socket, rate topology.Rate) {
	byteTime := 8 * femto * 1e9 / float64(rate)
	if !n.config.Exact {
		off := float64(n.rng.UpTo(2*clockPPM)) - clockPPM
		byteTime += float64(byteTime * off / 1e6)
	}
	l.byteTime = int64(byteTime)
	if from.port == atHost {
		n.hosts[from.device].line = l
		l.latency += n.config.HostLatency
		l.queueLimit = hostQueue * l.byteTime
	} else {
		n.switches[from.device].lines[from.port] = l
		l.queueLimit = int64(n.config.Queue) * l.byteTime
	}
	if to.port == atHost {
		l.latency += n.config.HostLatency
		h := &n.hosts[to.device]
		l.arrive = func() {
			f := l.inFlight.pop()
			h.receive(&f)
		}
	} else {
		l.latency += n.config.SwitchLatency
		s := &n.switches[to.device]
		l.arrive = func() {
			f := l.inFlight.pop()
			n.forward(s, to.port, &f)
		}
	}
}

// send queues a frame on a line.
func (n *Network) send(l *line, at monotime.Time, f *frame) {
	if arrival, ok := l.send(at, f); ok {
		n.queue.At(arrival, l.arrive)
	}
}

// forward sends a frame out of the ports that the switch decides on.
func (n *Network) forward(s *switchNode, port int, f *frame) {
	now := n.queue.Now()
	n.header = transport.Frame{Dst: f.dst, Src: f.src, OptionalTag: transport.Tagged(transport.Tag{VID: f.vid})}
	n.egress = s.Forward(now, port, &n.header, n.egress[:0])
	if len(n.egress) == 0 {
		n.count.Filtered++
		return
	}
	n.count.Copies += uint64(len(n.egress) - 1)
	for i := range n.egress {
		n.send(s.lines[n.egress[i].Port], now, f)
	}
}

// SetVID changes the VID that one host sends to another with, from now on. The reverse direction
// stays.
func (n *Network) SetVID(from, to int, vid transport.VID) { n.hosts[from].vids[to] = vid }

// SetRoute changes both directions of a pair, at once.
func (n *Network) SetRoute(p plan.Pair, vid transport.VID) {
	n.SetVID(p.A, p.B, vid)
	n.SetVID(p.B, p.A, vid)
}

// Apply sets the VIDs of all pairs to a plan's, which must have as many nodes as there are hosts.
func (n *Network) Apply(p *plan.Plan) {
	for b := range n.hosts {
		for a := range b {
			n.SetRoute(plan.Pair{A: a, B: b}, p.PairVID(a, b))
		}
	}
}
