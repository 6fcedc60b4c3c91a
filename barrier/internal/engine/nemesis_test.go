package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// nemesis is what a run does to its nodes besides the network's faults.
type nemesis struct {
	points map[string]uint64 // how often each marked point was hit; nil: off in this run
	kept   []keptFrame       // frames that come again, much later
	passed uint64            // barriers that all members have left
	exits  map[exit]int
}

// keptFrame is a frame that a switch has kept.
type keptFrame struct {
	to, from, nic int
	b             []byte
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
	receive := r.receive
	r.receive = func(to, from, nic int, b []byte) { r.misreceive(receive, keptFrame{to, from, nic, b}) }
	left := r.left
	r.left = func(node int, b barrier) {
		_, generation := r.engine(node, b.group).State(b.number)
		e := exit{b, generation}
		if r.exits[e]++; r.exits[e] == len(r.engine(node, b.group).nodes) {
			r.passed++
			delete(r.exits, e)
		}
		left(node, b)
	}
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
func (r *run) misreceive(receive func(to, from, nic int, b []byte), f keptFrame) {
	if r.points == nil {
		receive(f.to, f.from, f.nic, f.b)
		return
	}
	switch {
	case r.hits("refused receive", .01):
		return
	case r.hits("short frame", .01):
		receive(f.to, f.from, f.nic, f.b[:r.rng.IntN(headLen)])
	case r.hits("frame of no member", .01):
		receive(f.to, len(r.sites)+1, f.nic, f.b)
	case r.hits("frame of another group", .01):
		b := slices.Clone(f.b)
		var m Message
		if Parse(b, &m) == nil {
			m.Identity.Hash += 1000
			receive(f.to, f.from, f.nic, m.Append(nil))
		}
	case r.hits("same frame at once", .02):
		receive(f.to, f.from, f.nic, f.b)
	case r.hits("frame kept for long", .01):
		r.kept = append(r.kept, f)
	case len(r.kept) > 0 && r.hits("kept frame comes again", .05):
		k := r.kept[r.rng.IntN(len(r.kept))]
		receive(k.to, k.from, k.nic, k.b)
	}
	receive(f.to, f.from, f.nic, f.b)
	if r.hits("early advance", .02) {
		r.tick(f.to)
	}
	if r.hits("late timer", .01) {
		r.armed[f.to] = r.Now().Add(-1) // what was set does nothing
		r.After(r.upTo(20*time.Millisecond), func() { r.net.Work(f.to, 0, func() { r.tick(f.to) }) })
	}
}

// figures are counts by name. Their String is what bench/campaign reads.
type figures map[string]uint64

func (f figures) String() string {
	b, err := json.Marshal(map[string]uint64(f))
	if err != nil {
		panic(fmt.Sprint("figures: ", err))
	}
	return string(b)
}

// addTo adds a run's figures.
func (r *run) addTo(sum figures) {
	sum["barriers"] += r.passed
	sum["crashes"] += uint64(len(r.crashed))
	sum["clock jumps"] += uint64(r.jumps)
	sum["cuts"] += uint64(r.cuts)
	c := r.net.Counters()
	for name, n := range map[string]uint64{
		"frames": c.Sent, "fault: lost": c.Lost, "fault: duplicated": c.Duplicated, "fault: reordered": c.Reordered,
		"fault: delayed": c.Delayed, "fault: corrupted": c.Corrupted, "fault: cut": c.Cut, "fault: misrouted": c.Misrouted,
		"fault: in a burst": c.Burst, "fault: ring full": c.Overrun,
	} {
		sum[name] += n
	}
	for point, n := range r.points {
		sum["point: "+point] += n
	}
}
