package control

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	// maxSilent is the number of periods in a row after which the last rate of a node whose
	// counters cannot be read counts no longer: periods in which the destination, which sent
	// something back when the node was last read, sends it nothing.
	maxSilent = 3
	// impossible is the multiple of a cable's rate above which a counter may be broken: the first
	// time the last rate to its destination counts instead, and from the second time in a row on
	// what is counted, as then it is rather the topology that is wrong. Counters count when a frame
	// is queued, so a little more than the cable carries is possible.
	impossible = 4
	// tooFast is the multiple of its cable's rate above which a node is told of that sends so much
	// in two periods in a row: that is more than queues take.
	tooFast = 1.5
	// comeBack is how long after a node's counters have begun anew its programs may still be coming
	// back to its manager, each with all that it has counted: they try at least every 3 s.
	comeBack = 4 * time.Second
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
	// Of a node with a failover: the paths that pairs must not be put on, and the nodes to which it
	// has put frames on another VID than they prefer.
	Down  []DownPath
	Moved []int
}

// SentTo is how much a node has sent to another with one VID, since an instant that stays the same:
// as vlan.Sent, but by node, and by VIDs that the plan lacks, too. Where a counter goes back, or is
// gone, the node's have begun anew, as with its manager: for a while what they show counts as
// missing.
type SentTo struct {
	Node  int
	VID   transport.VID
	Bytes uint64
}

// observation is what passed in one period.
type observation struct {
	flows   traffic.Matrix
	vids    map[plan.Pair]transport.VID // that pairs used, or several; not of missing nodes
	missing []bool                      // by node: its counters could not be read, or begin anew
	tooFast []int                       // nodes that send more than their cables are said to carry
}

// several is the VID of most frames to a destination, or of a pair, if there is no one such VID.
const several transport.VID = 0

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
	pending *reading       // of this period
	last    *reading       // of an earlier one
	sent    map[int]sentBy // by destination, in the last period with a sample
	missing bool           // in the latest period
	fast    int            // periods in a row with more than tooFast
	total   topology.Rate  // to all destinations, as counted
	anew    monotime.Time  // when counters were seen to begin anew; the origin: not of late
}

// reading is a Sample.
type reading struct {
	at    monotime.Time
	bytes map[counter]uint64
}

type counter struct {
	to  int
	vid transport.VID
}

// sentBy is the rate to a destination, and the VID of most of it, or several.
type sentBy struct {
	rate     topology.Rate
	vid      transport.VID
	doubtful bool // impossible, the last time
	answered bool // the destination sent something back, in the same period
	silent   int  // periods since then in which the destination, which was read, sent nothing
}

func newMeter(t *topology.Topology) meter { return meter{t.Hosts, make([]nodeMeter, len(t.Hosts))} }

func (m *meter) observe(s Sample) error {
	if s.Node < 0 || s.Node >= len(m.nodes) {
		return fmt.Errorf("%w: node %d (want 0 to %d)", ErrBadSample, s.Node, len(m.nodes)-1)
	}
	n := &m.nodes[s.Node]
	if n.last != nil && !s.At.After(n.last.at) {
		return fmt.Errorf("%w: node %d: %v before the one of the last period (want a later instant)",
			ErrBadSample, s.Node, n.last.at.Sub(s.At))
	}
	r := &reading{s.At, make(map[counter]uint64, len(s.Sent))}
	for _, c := range s.Sent {
		if c.Node < 0 || c.Node >= len(m.nodes) || c.Node == s.Node {
			return fmt.Errorf("%w: node %d: bytes to node %d (want another of 0 to %d)",
				ErrBadSample, s.Node, c.Node, len(m.nodes)-1)
		}
		key := counter{c.Node, c.VID}
		if _, twice := r.bytes[key]; twice {
			return fmt.Errorf("%w: node %d: two counters of VID %d to node %d", ErrBadSample, s.Node, c.VID, c.Node)
		}
		r.bytes[key] = c.Bytes
	}
	n.pending = r
	return nil
}

// endPeriod returns what has passed since the last period. ok is false if no node has two samples.
func (m *meter) endPeriod() (o observation, ok bool) {
	o = observation{vids: make(map[plan.Pair]transport.VID), missing: make([]bool, len(m.nodes))}
	for from := range m.nodes {
		n := &m.nodes[from]
		n.missing = !n.isComparable()
		if n.missing {
			n.last, n.pending = cmp.Or(n.pending, n.last), nil
		} else if n.compare(m.hosts[from].Rate); n.fast >= 2 {
			o.tooFast = append(o.tooFast, from)
		}
		o.missing[from] = n.missing
		ok = ok || n.sent != nil
	}
	for from := range m.nodes {
		m.lookBack(from)
		o.add(from, &m.nodes[from])
	}
	return o, ok
}

// add adds what a node has sent.
func (o *observation) add(from int, n *nodeMeter) {
	for _, to := range slices.Sorted(maps.Keys(n.sent)) {
		s := n.sent[to]
		if s.rate <= 0 {
			continue
		}
		o.flows = append(o.flows, traffic.Flow{From: from, To: to, Rate: s.rate})
		if n.missing {
			continue // it may send by another VID since
		}
		pair := plan.PairOf(from, to)
		if vid, both := o.vids[pair]; both && vid != s.vid {
			s.vid = several
		}
		o.vids[pair] = s.vid
	}
}

// lookBack notes which destinations have sent something back to a node, and forgets the rates of a
// missing node to those that do no longer: it has ended, or has nothing for them. The other last
// rates stay until the node is back, as its programs may well go on without its manager.
func (m *meter) lookBack(from int) {
	n := &m.nodes[from]
	for to, s := range n.sent {
		if m.nodes[to].missing {
			continue // it cannot tell
		}
		switch back := m.nodes[to].sent[from].rate > 0; {
		case !n.missing:
			s.answered, s.silent = back, 0
		case back:
			s.silent = 0
		case s.answered:
			s.silent++
		}
		if n.sent[to] = s; s.silent >= maxSilent {
			delete(n.sent, to)
		}
	}
}

// isComparable reports whether there is a pending reading, and its counters have not begun anew of
// late.
func (n *nodeMeter) isComparable() bool {
	if n.pending == nil || n.last == nil {
		return n.pending != nil
	}
	for c, had := range n.last.bytes {
		if bytes, there := n.pending.bytes[c]; !there || bytes < had {
			n.anew = n.pending.at
			return false
		}
	}
	if n.anew == (monotime.Time{}) || n.last.at.Sub(n.anew) >= comeBack {
		n.anew = monotime.Time{}
		return true
	}
	return false
}

// compare makes rates from the pending reading and the one before, which it replaces. A new counter
// counts from 0.
func (n *nodeMeter) compare(cable topology.Rate) {
	now, last := n.pending, n.last
	n.pending, n.last = nil, now
	if last == nil {
		return
	}
	seconds := now.at.Sub(last.at).Seconds()
	type total struct {
		bytes, most uint64        // of all the destination's VIDs, and of
		vid         transport.VID // the one with the most
		broken      bool          // one of them is impossible
	}
	sent := make(map[int]total)
	for c, bytes := range now.bytes {
		bytes -= last.bytes[c]
		t := sent[c.to]
		t.broken = t.broken || float64(bytes)*8/seconds > impossible*float64(cable)
		t.bytes += bytes
		if bytes > t.most {
			t.most, t.vid = bytes, c.vid
		}
		sent[c.to] = t
	}
	before := n.sent
	n.sent, n.total = make(map[int]sentBy), 0
	for to, t := range sent {
		s := sentBy{rate: topology.Rate(float64(t.bytes) * 8 / seconds), vid: t.vid, doubtful: t.broken}
		n.total += s.rate
		if float64(t.most) < mostly*float64(t.bytes) {
			s.vid = several
		}
		if t.broken && !before[to].doubtful {
			s = before[to]
			s.doubtful = true
		}
		n.sent[to] = s
	}
	if n.fast++; n.total <= tooFast*cable {
		n.fast = 0
	}
}
