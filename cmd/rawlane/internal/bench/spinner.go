package bench

import (
	"math"
	"runtime"
	"time"
)

// spinner is a number of rounds of a loop that take a given time on an idle machine.
type spinner int

// spin runs the loop.
func (s spinner) spin() {
	x := uint64(s)
	for range s {
		x = x*6364136223846793005 + 1
	}
	runtime.KeepAlive(x) // or the compiler would leave the loop out
}

// newSpinner finds the number of rounds for a time.
func newSpinner(work time.Duration) spinner {
	const rounds = spinner(20_000)
	best := time.Duration(math.MaxInt64)
	for range 20 {
		start := time.Now()
		rounds.spin()
		best = min(best, max(1, time.Since(start)))
	}
	return spinner(float64(rounds) * float64(work) / float64(best))
}
