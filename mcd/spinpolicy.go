package mcd

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
)

// spinPolicy decides how a goroutine waits: how long it spins, and how often it gives its core away
// meanwhile.
//
// Spinning pays if the message comes soon. What it costs is the processor time of this goroutine,
// not the time that it has given to others meanwhile. Where processes outnumber the cores, a
// spinner that gives its core away after each look spends little, and hears its message without
// being woken, which would cost each of them 5 µs and more. Whether spinning will pay is guessed
// from the waits before: the moving average of what they cost must be below max. Waits that sleep
// are measured too, so that spinning is taken up again when they become short.
type spinPolicy struct {
	max     time.Duration
	average atomic.Int64 // cost of the last waits, in ns; each weighs 1/8
	share   atomic.Int64 // of the time spent spinning, how much was this goroutine's own, in 1/256
	crowd   atomic.Int32 // how sure it is that others want this core
	sleeps  atomic.Uint32
}

const (
	averageWeight = 8
	wholeShare    = 256
	// politeAfter is how long a spinner keeps its core to itself where nobody else seems to want
	// it. A message between two spinning nodes takes 1 to 3 µs; a longer wait may be for somebody
	// that needs a core.
	politeAfter = 5 * time.Microsecond
	// longRest is how long giving the core away takes, at least, if somebody else takes it. With
	// nobody there it takes 0.3 µs.
	longRest = 1500 * time.Nanosecond
	// Each rest that is long makes it surer that there is a crowd; one that is not, less so.
	crowdGrows = 3
	crowdMax   = 24
	crowded    = 6
	// retryEvery is how many waits sleep before one spins again, to learn whether that would pay by
	// now.
	retryEvery = 64
)

func (p *spinPolicy) init(limit time.Duration) {
	p.max = limit
	p.share.Store(wholeShare)
}

// limit returns how much of its own time a wait may spin now; zero is not at all.
func (p *spinPolicy) limit() time.Duration {
	if p.max < 0 || time.Duration(p.average.Load()) > p.max && p.sleeps.Add(1)%retryEvery != 0 {
		return 0
	}
	return p.max
}

// note takes a finished wait into account, by what it has cost. A single long wait weighs no more
// than 4 × max, so that one pause in a quick exchange does not end the spinning.
func (p *spinPolicy) note(cost time.Duration) {
	cost = min(cost, 4*max(p.max, 0))
	old := p.average.Load()
	p.average.Store(old + (int64(cost)-old)/averageWeight)
}

// noteSleep takes a wait that slept into account: spinning would have cost its share of that time.
func (p *spinPolicy) noteSleep(spun, slept time.Duration) {
	p.note(spun + slept*time.Duration(p.share.Load())/wholeShare)
}

// noteShare learns how much of the time spent spinning was the spinner's own.
func (p *spinPolicy) noteShare(own, whole time.Duration) {
	if whole <= 0 {
		return
	}
	old := p.share.Load()
	p.share.Store(old + (int64(own*wholeShare/whole)-old)/averageWeight)
}

// isCrowded reports whether others seem to want this core.
func (p *spinPolicy) isCrowded() bool { return p.crowd.Load() >= crowded }

// rest gives the core away: to goroutines of this process that are ready and have no processor,
// and, after spinning for a while, to other processes. now is the time of the call. It returns the
// time at which the caller has the core again.
func (p *spinPolicy) rest(now monotime.Time, spun time.Duration) monotime.Time {
	runtime.Gosched()
	if spun > politeAfter || p.isCrowded() {
		yield()
	}
	back := clock.Now()
	n := p.crowd.Load()
	if back.Sub(now) > longRest {
		p.crowd.Store(min(n+crowdGrows, crowdMax))
	} else if n > 0 {
		p.crowd.Store(n - 1)
	}
	return back
}
