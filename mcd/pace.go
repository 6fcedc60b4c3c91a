package mcd

import (
	"runtime"
	"sync/atomic"
	"time"
)

// pace decides how a goroutine waits: how long it spins, and how polite it is meanwhile.
//
// Spinning pays if the message comes soon. Whether it will is guessed from the waits before: their moving
// average must be below max. Waits are measured also when they sleep, so that spinning is taken up again
// when they become short; and a program whose processes outnumber the cores, where every wait is long,
// sleeps at once and leaves the cores to those who have work.
type pace struct {
	max     time.Duration
	average atomic.Int64 // of the last waits, in ns; each weighs 1/8
}

const (
	paceWeight = 8
	// politeAfter is how long a spinner keeps its core to itself. A message between two spinning nodes takes
	// 1 to 3 µs; who waits longer probably waits for somebody that needs a core.
	politeAfter = 0 * time.Microsecond
)

// spin returns how long to spin now; zero is not at all.
func (p *pace) spin() time.Duration {
	if p.max < 0 || time.Duration(p.average.Load()) > p.max {
		return 0
	}
	return p.max
}

// note takes a finished wait into account. A single long wait weighs no more than 4 × max, so that one
// pause in a quick exchange does not end the spinning.
func (p *pace) note(waited time.Duration) {
	waited = min(waited, 4*max(p.max, 0))
	old := p.average.Load()
	p.average.Store(old + (int64(waited)-old)/paceWeight)
}

// rest is called about every microsecond by a goroutine that has been spinning for so long. Whoever it waits
// for may be a goroutine of this process that is ready and has no processor: with nobody there, the call
// costs 70 ns.
func rest(spun time.Duration) {
	runtime.Gosched()
	if spun > politeAfter {
		yield()
	}
}
