package control

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	// maxMissed is the number of periods for which a node's last rates count as current when its
	// counters cannot be read.
	maxMissed = 3
	// impossible is the multiple of a cable's rate above which a counter is broken, and the last
	// rate counts instead. Counters count when a frame is queued, so a little more than the cable
	// carries is possible.
	impossible = 4
	// mostly is the part of a pair's bytes that must have one VID for the pair to use it.
	mostly = 0.9
)

// ErrBadSample matches the errors of Observe.
var ErrBadSample = errors.New("bad sample")

// Sample is a reading of a node's counters.
type Sample struct {
	Node int
	At   monotime.Time // on the reader's clock
	Sent []SentTo
}

// SentTo is how much a node has sent to another with one VID, since an instant that stays the same:
// as vlan.Sent, but by node. A counter that goes back has begun anew from 0.
type SentTo struct {
	Node  int
	VID   transport.VID
	Bytes uint64
}

// observation is what passed in one period.
type observation struct {
	flows   traffic.Matrix
	vids    []pairVID // of the pairs that used one VID, ascending
	missing []bool    // by node: its counters could not be read
}

type pairVID struct {
	pair plan.Pair
	vid  transport.VID // 0: several
}

// rate returns the rate of a flow that passed, or 0.
func (o *observation) rate(f traffic.Flow) topology.Rate {
	if i, ok := slices.BinarySearchFunc(o.flows, f, traffic.Flow.Compare); ok {
		return o.flows[i].Rate
	}
	return 0
}

// meter makes rates from counters.
type meter struct {
	hosts []topology.Host
	nodes []nodeMeter
}

type nodeMeter struct {
	pending *Sample // of this period
	last    *Sample // of an earlier one
	count   map[counter]uint64
	sent    map[int]sentBy // by destination, in the last period with a sample
	missed  int            // periods since then
}

type counter struct {
	to  int
	vid transport.VID
}

// sentBy is the rate to a destination, and the VID of most of it, or 0.
type sentBy struct {
	rate topology.Rate
	vid  transport.VID
}

func newMeter(t *topology.Topology) meter { return meter{t.Hosts, make([]nodeMeter, len(t.Hosts))} }

func (m *meter) observe(s Sample) error {
	if s.Node < 0 || s.Node >= len(m.nodes) {
		return fmt.Errorf("%w: node %d (want 0 to %d)", ErrBadSample, s.Node, len(m.nodes)-1)
	}
	n := &m.nodes[s.Node]
	if n.last != nil && !s.At.After(n.last.At) {
		return fmt.Errorf("%w: node %d: %v before the one of the last period (want a later instant)",
			ErrBadSample, s.Node, n.last.At.Sub(s.At))
	}
	seen := make(map[counter]bool, len(s.Sent))
	for _, c := range s.Sent {
		if c.Node < 0 || c.Node >= len(m.nodes) || c.Node == s.Node {
			return fmt.Errorf("%w: node %d: bytes to node %d (want another of 0 to %d)",
				ErrBadSample, s.Node, c.Node, len(m.nodes)-1)
		}
		if seen[counter{c.Node, c.VID}] {
			return fmt.Errorf("%w: node %d: two counters of VID %d to node %d", ErrBadSample, s.Node, c.VID, c.Node)
		}
		seen[counter{c.Node, c.VID}] = true
	}
	s.Sent = slices.Clone(s.Sent)
	n.pending = &s
	return nil
}

// endPeriod returns what has passed since the last period. ok is false if no node has two samples.
func (m *meter) endPeriod() (o observation, ok bool) {
	o.missing = make([]bool, len(m.nodes))
	for from := range m.nodes {
		n := &m.nodes[from]
		if n.pending != nil {
			n.compare(m.hosts[from].Rate)
		} else {
			o.missing[from] = true
			if n.missed++; n.missed > maxMissed {
				n.sent = nil
			}
		}
		ok = ok || n.sent != nil
		for _, to := range slices.Sorted(maps.Keys(n.sent)) {
			if s := n.sent[to]; s.rate > 0 {
				o.flows = append(o.flows, traffic.Flow{From: from, To: to, Rate: s.rate})
				o.vids = append(o.vids, pairVID{plan.PairOf(from, to), s.vid})
			}
		}
	}
	o.vids = agreed(o.vids)
	return o, ok
}

// agreed merges the VIDs that the two ends of pairs use, and leaves out pairs with several.
func agreed(vids []pairVID) []pairVID {
	slices.SortStableFunc(vids, func(a, b pairVID) int { return a.pair.Compare(b.pair) })
	merged := vids[:0]
	for _, v := range vids {
		if last := len(merged) - 1; last < 0 || merged[last].pair != v.pair {
			merged = append(merged, v)
		} else if merged[last].vid != v.vid {
			merged[last].vid = 0
		}
	}
	return slices.DeleteFunc(merged, func(v pairVID) bool { return v.vid == 0 })
}

// compare makes rates from the pending sample and the one before, which it replaces. A counter that
// went back, or a new one, counts from 0.
func (n *nodeMeter) compare(cable topology.Rate) {
	now, last, before := n.pending, n.last, n.count
	n.pending, n.last, n.missed = nil, now, 0
	n.count = make(map[counter]uint64, len(now.Sent))
	for _, c := range now.Sent {
		n.count[counter{c.Node, c.VID}] = c.Bytes
	}
	if last == nil {
		return
	}
	seconds := now.At.Sub(last.At).Seconds()
	type total struct {
		bytes   uint64
		largest SentTo // of the destination's VIDs
	}
	sent := make(map[int]total)
	for _, c := range now.Sent {
		if had := before[counter{c.Node, c.VID}]; c.Bytes >= had {
			c.Bytes -= had
		}
		if float64(c.Bytes)*8/seconds > impossible*float64(cable) {
			c.Bytes = uint64(float64(n.sent[c.Node].rate) * seconds / 8) // as before
		}
		t := sent[c.Node]
		t.bytes += c.Bytes
		if c.Bytes > t.largest.Bytes {
			t.largest = c
		}
		sent[c.Node] = t
	}
	n.sent = make(map[int]sentBy)
	for to, t := range sent {
		s := sentBy{rate: topology.Rate(float64(t.bytes) * 8 / seconds)}
		if float64(t.largest.Bytes) >= mostly*float64(t.bytes) {
			s.vid = t.largest.VID
		}
		n.sent[to] = s
	}
}
