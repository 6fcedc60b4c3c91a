package reliable

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/simfault"
)

// The marked points, where a driver or a processor may err, besides those of every core.
const (
	frameBeyondLimit = "frame beyond the limit"
	staleFrame       = "frame of a stale incarnation"
	pumpedForNothing = "pumped for nothing"
	batchReversed    = "batch sent out of order"
	busyForLong      = "link busy for long"
)

var points = []string{
	simfault.RefusedReceive, simfault.ShortFrame, frameBeyondLimit, staleFrame, simfault.SameFrameAtOnce, simfault.FrameKept, simfault.KeptFrameAgain, simfault.EarlyAdvance,
	simfault.JustBefore, simfault.LateTimer, simfault.TimerTwice, pumpedForNothing, simfault.SlowHandler, simfault.ClockStandsStill, batchReversed, busyForLong,
	simfault.CrashInABatch,
}

// nemesis is what a run does to its nodes besides the network's faults.
type nemesis struct {
	jumps   int               // clocks that jump ahead
	skew    []time.Duration   // by node: how far its clock has jumped
	stopped []monotime.Time   // by node: where its clock stands still; zero: it does not
	points  bool              // marked points misbehave
	hit     map[string]uint64 // how often each did
	kept    []simfault.Frame  // frames that come again, much later
	refused uint64            // batches of which the NIC took a part
}

// chooseNemesis draws what a run suffers.
func (r *run) chooseNemesis(n int) {
	r.skew, r.stopped = make([]time.Duration, n), make([]monotime.Time, n)
	if r.often(.2) {
		r.jumps = 1 + r.rng.IntN(3)
	}
	r.points, r.hit = r.often(.25), map[string]uint64{}
}

// hits reports whether a marked point is to misbehave now, and counts it.
func (r *run) hits(point string, p float64) bool {
	if !r.points || !r.often(p) {
		return false
	}
	r.hit[point]++
	return true
}

// unleash plans the jumps. Two of one node lie apart: the time of one does not count as silence, that of
// several may.
func (r *run) unleash() {
	for i := range min(r.jumps, len(r.nodes)) {
		r.After(r.upTo(20*time.Millisecond), func() {
			r.skew[i] += r.upTo(10 * time.Second)
			r.rearm(i)
		})
	}
}

// misreceive is a driver that errs where it may.
func (r *run) misreceive(s *site, b []byte) {
	if !r.points || s.dead {
		s.receive(b)
		return
	}
	switch {
	case r.hits(simfault.RefusedReceive, .01):
		return
	case r.hits(simfault.ShortFrame, .01):
		var h Header
		if Parse(b[:r.rng.IntN(HeaderLen)], &h) == nil {
			r.fail("a part of a header is a frame")
		}
	case r.hits(frameBeyondLimit, .005):
		long := append(slices.Clone(b), make([]byte, r.size)...)
		if Kind(b[0]&0xf) != Ack {
			s.receive(long)
		} else if Parse(long, new(Header)) == nil {
			r.fail("a SACK of %d bytes is one", len(long)-HeaderLen)
		}
	case Kind(b[0]&0xf) == Data && r.hits(staleFrame, .01):
		stale := slices.Clone(b)
		binary.BigEndian.PutUint32(stale[4:], r.rng.Uint32()|1)
		s.receive(stale)
	case r.hits(simfault.SameFrameAtOnce, .02):
		s.receive(b)
	case r.hits(simfault.FrameKept, .01):
		r.kept = append(r.kept, simfault.Frame{To: s.node, From: s.peer, Bytes: b})
	case len(r.kept) > 0 && r.hits(simfault.KeptFrameAgain, .05):
		k := r.kept[r.rng.IntN(len(r.kept))]
		r.nodes[k.To].peers[k.From].receive(k.Bytes)
	}
	if s.dead {
		return
	}
	s.receive(b)
	if r.hits(simfault.EarlyAdvance, .02) {
		s.tick(s.timer)
	}
	if r.hits(simfault.LateTimer, .01) {
		s.timer, s.armed = r.Now().Add(-1), true // what was set does nothing
		late := s.timer
		r.After(r.upTo(5*time.Millisecond), func() { s.tick(late) })
	}
	if r.hits(pumpedForNothing, .02) {
		s.pump()
	}
	if r.hits(simfault.SlowHandler, .005) {
		r.net.Work(s.node, r.upTo(time.Millisecond), func() {})
	}
	if r.hits(simfault.ClockStandsStill, .002) {
		r.freeze(s.node, r.upTo(3*time.Millisecond))
	}
	at, ok := s.c.Deadline()
	if ok && r.stopped[s.node].IsZero() && at.Add(-1).After(s.now()) && r.hits(simfault.JustBefore, .02) {
		r.At(at.Add(-r.skew[s.node]-1), func() { s.tick(s.timer) })
	}
	if r.hits(simfault.TimerTwice, .01) {
		s.tick(s.timer)
		s.tick(s.timer)
	}
}

// freeze has a node's clock stand still for a while, and go on from where it was.
func (r *run) freeze(node int, d time.Duration) {
	if !r.stopped[node].IsZero() {
		return
	}
	r.stopped[node] = r.clock(node)
	r.After(d, func() {
		r.skew[node] = r.stopped[node].Sub(r.Now())
		r.stopped[node] = monotime.Time{}
		r.rearm(node)
	})
}

// rearm sets a node's timers after its clock has changed.
func (r *run) rearm(node int) {
	for _, s := range r.nodes[node].peers {
		if s != nil && !s.dead {
			s.armed = false
			s.pump()
		}
	}
}

// sends gives the network some frames of a batch, or all, in an order of its own. It reports how
// many; the others are refused, and the link is busy for so long.
func (s *site) sends(frames [][]byte) (n int, busy time.Duration) {
	if len(frames) > 1 && s.r.hits(batchReversed, .05) {
		for i := range frames {
			s.r.net.Send(s.node, s.peer, 0, slices.Clone(frames[len(frames)-1-i][headroom:]))
		}
		return len(frames), 0
	}
	for i, b := range frames {
		switch {
		case s.r.often(.01):
			s.r.refused++
			return i, 1 + s.r.upTo(100*time.Microsecond)
		case s.r.hits(busyForLong, .001):
			return i, 1 + s.r.upTo(20*time.Millisecond)
		case s.r.crashes > 0 && s.r.hit[simfault.CrashInABatch] < 3 && s.r.hits(simfault.CrashInABatch, .0005):
			s.r.crashNow(s.node)
			return len(frames), 0
		}
		s.r.net.Send(s.node, s.peer, 0, slices.Clone(b[headroom:]))
	}
	return len(frames), 0
}

// addTo adds a run's figures.
func (r *run) addTo(sum simfault.Figures) {
	starts := uint64(0)
	for i := range r.nodes {
		starts += uint64(r.nodes[i].starts - 1)
	}
	for name, n := range map[string]uint64{
		"crashes": starts, "clock jumps": uint64(r.jumps), "cuts": uint64(r.cuts), "pauses": uint64(r.pauses),
		"connections ended": r.failures, "fault: batch refused": r.refused,
	} {
		sum[name] += n
	}
	c := r.net.Counters()
	sum.AddNetwork(&c)
	sum.AddPoints(points, r.hit)
}
