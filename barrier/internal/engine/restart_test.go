package engine

import (
	"math/rand/v2"
	"time"
)

// newRestartRun is a small cluster whose nodes leave when they have finished. Some crash in the midst, and
// are back before the others have noticed, or after: they begin with a first barrier, while the others
// are further, or have said goodbye.
func newRestartRun(algo string, seed uint64) *run {
	r := &run{rng: rand.New(rand.NewPCG(seed, 2))}
	n := 2 + r.rng.IntN(8)
	r.barriers = 1 + r.rng.Uint32N(3)
	r.slow = r.upTo(3 * time.Millisecond)
	r.faults = r.someFaults()
	r.faults.DelayBy = min(r.faults.DelayBy, 20*time.Millisecond)
	r.build(algo, n, seed)
	r.choosePrograms()
	r.crashes, r.restarts, r.leave = 1+r.rng.IntN(3), true, r.often(.7)
	r.chooseNemesis(n)
	r.barriers, r.stale, r.patience = min(r.barriers, 6), false, 10*limit
	if r.often(.7) {
		r.downtime = 20 * time.Millisecond
	}
	return r
}
