package control

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

const (
	// maxSilent is for how many periods a node's last rates are taken to go on when its counters cannot be read.
	maxSilent = 3
	// impossible is how many times the rate of a node's cable its counters may show at most. They count when a
	// frame is queued, so a little more than the cable carries is possible; a multiple is a counter that is broken, and the
	// last rate is taken to go on.
	impossible = 4
	// mostly is the part of a pair's bytes that must have one VID for the pair to be said to use it.
	mostly = 0.9
)

// ErrBadSample is what the errors of Observe are.
var ErrBadSample = errors.New("bad sample")

// flowKey is the two ends of a flow.
type flowKey struct{ from, to int }

func (k flowKey) compare(o flowKey) int {
	return cmp.Or(cmp.Compare(k.from, o.from), cmp.Compare(k.to, o.to))
}

// passage is what was seen of one period.
type passage struct {
	rate    map[flowKey]topology.Rate
	vid     map[plan.Pair]transport.VID // what pairs used, of those that used one
	missing []bool                      // by node: its counters could not be read
}

// meter makes rates from counters.
type meter struct {
	hosts []topology.Host
	nodes []nodeMeter
}

type nodeMeter struct {
	pending *Sample // of this period
	last    *Sample // of an earlier one
	count   map[sentKey]uint64
	rate    map[int]topology.Rate // by destination, in the last period that was seen
	vid     map[int]transport.VID // by destination, likewise
	silent  int                   // periods since then
}

type sentKey struct {
	to  int
	vid transport.VID
}

func newMeter(t *topology.Topology) meter { return meter{t.Hosts, make([]nodeMeter, len(t.Hosts))} }

func (m *meter) observe(s Sample) error {
	if s.Node < 0 || s.Node >= len(m.nodes) {
		return fmt.Errorf("%w: node %d (want 0 to %d)", ErrBadSample, s.Node, len(m.nodes)-1)
	}
	n := &m.nodes[s.Node]
	if n.last != nil && !s.At.After(n.last.At) {
		return fmt.Errorf("%w: node %d: %v before the one of the last period (want a later instant)", ErrBadSample, s.Node, n.last.At.Sub(s.At))
	}
	seen := make(map[sentKey]bool, len(s.Sent))
	for _, c := range s.Sent {
		if c.Node < 0 || c.Node >= len(m.nodes) || c.Node == s.Node {
			return fmt.Errorf("%w: node %d: bytes to node %d (want another of 0 to %d)", ErrBadSample, s.Node, c.Node, len(m.nodes)-1)
		}
		if seen[sentKey{c.Node, c.VID}] {
			return fmt.Errorf("%w: node %d: two counters of VID %d to node %d", ErrBadSample, s.Node, c.VID, c.Node)
		}
		seen[sentKey{c.Node, c.VID}] = true
	}
	s.Sent = slices.Clone(s.Sent)
	n.pending = &s
	return nil
}

// endPeriod returns what has passed since the last period. ok is false if no node has been seen twice.
func (m *meter) endPeriod() (p passage, ok bool) {
	p = passage{rate: make(map[flowKey]topology.Rate), vid: make(map[plan.Pair]transport.VID), missing: make([]bool, len(m.nodes))}
	mixed := make(map[plan.Pair]bool)
	for from := range m.nodes {
		n := &m.nodes[from]
		if n.pending == nil {
			p.missing[from] = true
			if n.silent++; n.silent > maxSilent {
				n.rate, n.vid = nil, nil
			}
		} else {
			n.compare(m.hosts[from].Rate)
		}
		ok = ok || n.rate != nil
		for to, rate := range n.rate {
			p.rate[flowKey{from, to}] = rate
		}
		for to, vid := range n.vid {
			pair := plan.PairOf(from, to)
			if other, two := p.vid[pair]; vid == 0 || two && other != vid {
				mixed[pair] = true
			}
			p.vid[pair] = vid
		}
	}
	for pair := range mixed {
		delete(p.vid, pair)
	}
	return p, ok
}

// compare makes rates from the pending sample and the one before, which it replaces. A counter that went back, or
// one that is new, counts from 0.
func (n *nodeMeter) compare(cable topology.Rate) {
	now, last := n.pending, n.last
	n.pending, n.last, n.silent = nil, now, 0
	before := n.count
	n.count = make(map[sentKey]uint64, len(now.Sent))
	for _, c := range now.Sent {
		n.count[sentKey{c.Node, c.VID}] = c.Bytes
	}
	if last == nil {
		return
	}
	seconds := now.At.Sub(last.At).Seconds()
	sent := make(map[int]uint64)
	largest := make(map[int]SentTo) // of each destination's VIDs
	for _, c := range now.Sent {
		if had := before[sentKey{c.Node, c.VID}]; c.Bytes >= had {
			c.Bytes -= had
		}
		if float64(c.Bytes)*8/seconds > impossible*float64(cable) {
			c.Bytes = uint64(float64(n.rate[c.Node]) * seconds / 8) // as before
		}
		sent[c.Node] += c.Bytes
		if c.Bytes > largest[c.Node].Bytes {
			largest[c.Node] = c
		}
	}
	n.rate, n.vid = make(map[int]topology.Rate), make(map[int]transport.VID)
	for to, c := range largest {
		n.rate[to] = topology.Rate(float64(sent[to]) * 8 / seconds)
		if n.vid[to] = 0; float64(c.Bytes) >= mostly*float64(sent[to]) {
			n.vid[to] = c.VID
		}
	}
}
