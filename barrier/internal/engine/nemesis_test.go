package engine

import (
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/simfault"
)

// The marked points, where a driver or a processor may err, besides those of every core.
const (
	frameOfNoMember = "frame of no member"
	frameOfAnother  = "frame of another group"
)

var points = []string{
	simfault.RefusedReceive, simfault.ShortFrame, frameOfNoMember, frameOfAnother, simfault.SameFrameAtOnce, simfault.FrameKept, simfault.KeptFrameAgain, simfault.EarlyAdvance,
	simfault.JustBefore, simfault.LateTimer, simfault.TimerTwice, simfault.SlowHandler, simfault.ClockStandsStill, simfault.CrashInABatch,
}

// nemesis is what a run does to its nodes besides the network's faults.
type nemesis struct {
	points map[string]uint64 // how often each marked point was hit; nil: off in this run
	kept   []simfault.Frame  // frames that come again, much later
	passed uint64            // barriers that all members have left
	exits  map[exit]int
}

// exit is a generation of a barrier.
type exit struct {
	barrier
	generation uint32
}

// chooseNemesis draws what a run suffers. Each draw stands behind all others, so that seeds keep
// what they had.
func (r *run) chooseNemesis(n int) {
	r.exits = map[exit]int{}
	if n > 1 && r.often(.3) {
		r.cuts = 1 + r.rng.IntN(3)
	}
	if r.often(.2) {
		r.jumps = 1 + r.rng.IntN(3)
	}
	if n <= 9 && r.often(.3) {
		r.barriers += r.rng.Uint32N(100)
	}
	if n <= 9 && r.often(.1) {
		r.barriers += r.rng.Uint32N(3000)
	}
	if r.often(.25) {
		r.points = map[string]uint64{}
	}
	r.downtime = 2 * limit
	r.stale = r.restarts && r.often(.5)
}

// hits reports whether a marked point is to misbehave now, and counts it.
func (r *run) hits(point string, p float64) bool {
	if r.points == nil || !r.often(p) {
		return false
	}
	r.points[point]++
	return true
}

// unleash plans the cuts and jumps, and puts the marked points in the way of the frames.
func (r *run) unleash() {
	for range r.cuts {
		r.After(r.upTo(r.expected()), r.cutOne)
	}
	for range r.jumps {
		r.After(r.upTo(r.expected()), func() {
			node := r.rng.IntN(len(r.sites))
			r.skew[node] += r.upTo(10 * time.Second)
			r.armed[node] = monotime.Time{} // the timer that was set is no longer right
			r.arm(node)
		})
	}
	for node := range r.sites {
		if r.crashes > 0 {
			r.mayCrash(node)
		}
	}
	receive := r.receive
	r.receive = func(to, from, nic int, b []byte) {
		r.misreceive(receive, simfault.Frame{To: to, From: from, NIC: nic, Bytes: b})
	}
	left, failed := r.left, r.failed
	r.failed = func(node int, b barrier, f *Failure) {
		if r.net.Alive(node) {
			failed(node, b, f)
		}
	}
	r.left = func(node int, b barrier) {
		if !r.net.Alive(node) {
			return // it has crashed while it sent what let it leave
		}
		_, generation := r.engine(node, b.group).State(b.number)
		e := exit{b, generation}
		if r.exits[e]++; r.exits[e] == len(r.engine(node, b.group).nodes) {
			r.passed++
			delete(r.exits, e)
		}
		left(node, b)
	}
}

// mayCrash has a node crash behind one of several frames that it sends at once.
func (r *run) mayCrash(node int) {
	const most = 3 // in a run
	post := r.sites[node].post
	r.sites[node].post = func(to []int, nic int, b []byte) {
		post(to, nic, b)
		if r.points[simfault.CrashInABatch] < most && r.mortal(node) && r.hits(simfault.CrashInABatch, .003) {
			r.crashThis(node)
		}
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
		r.stopped[node], r.armed[node] = monotime.Time{}, monotime.Time{}
		r.arm(node)
	})
}

// cutOne cuts a path, one way or both, for less than a member may be silent.
func (r *run) cutOne() {
	a := r.rng.IntN(len(r.sites))
	b := (a + 1 + r.rng.IntN(len(r.sites)-1)) % len(r.sites)
	cut := r.net.CutOneWay
	if r.often(.5) {
		cut = r.net.Cut
	}
	cut(a, b, true)
	r.After(r.upTo(limit/4), func() { cut(a, b, false) })
}

// misreceive is a driver that errs where it may.
func (r *run) misreceive(receive func(to, from, nic int, b []byte), f simfault.Frame) {
	if r.points == nil {
		receive(f.To, f.From, f.NIC, f.Bytes)
		return
	}
	switch {
	case r.hits(simfault.RefusedReceive, .01):
		return
	case r.hits(simfault.ShortFrame, .01):
		receive(f.To, f.From, f.NIC, f.Bytes[:r.rng.IntN(headLen)])
	case r.hits(frameOfNoMember, .01):
		receive(f.To, len(r.sites)+1, f.NIC, f.Bytes)
	case r.hits(frameOfAnother, .01):
		b := slices.Clone(f.Bytes)
		var m Message
		if Parse(b, &m) == nil {
			m.Identity.Hash += 1000
			receive(f.To, f.From, f.NIC, m.Append(nil))
		}
	case r.hits(simfault.SameFrameAtOnce, .02):
		receive(f.To, f.From, f.NIC, f.Bytes)
	case r.hits(simfault.FrameKept, .01):
		r.kept = append(r.kept, f)
	case len(r.kept) > 0 && r.hits(simfault.KeptFrameAgain, .05):
		k := r.kept[r.rng.IntN(len(r.kept))]
		receive(k.To, k.From, k.NIC, k.Bytes)
	}
	receive(f.To, f.From, f.NIC, f.Bytes)
	if r.hits(simfault.EarlyAdvance, .02) {
		r.tick(f.To)
	}
	if r.hits(simfault.SlowHandler, .01) {
		r.net.Work(f.To, r.upTo(2*time.Millisecond), func() {})
	}
	if r.hits(simfault.ClockStandsStill, .005) {
		r.freeze(f.To, r.upTo(5*time.Millisecond))
	}
	at, ok := r.sites[f.To].deadline()
	if ok && r.stopped[f.To].IsZero() && at.Add(-1).After(r.clock(f.To)) && r.hits(simfault.JustBefore, .02) {
		r.At(at.Add(-r.skew[f.To]-1), func() { r.net.Work(f.To, 0, func() { r.tick(f.To) }) })
	}
	if r.hits(simfault.TimerTwice, .01) {
		r.tick(f.To)
		r.tick(f.To)
	}
	if r.hits(simfault.LateTimer, .01) {
		r.armed[f.To] = r.Now().Add(-1) // what was set does nothing
		r.After(r.upTo(20*time.Millisecond), func() { r.net.Work(f.To, 0, func() { r.tick(f.To) }) })
	}
}

// addTo adds a run's figures.
func (r *run) addTo(sum simfault.Figures) {
	sum["barriers"] += r.passed
	sum["crashes"] += uint64(len(r.crashed))
	sum["clock jumps"] += uint64(r.jumps)
	sum["cuts"] += uint64(r.cuts)
	c := r.net.Counters()
	sum.AddNetwork(&c)
	sum.AddPoints(points, r.points)
}
