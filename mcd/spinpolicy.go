package mcd

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
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
//
// A spinner that gives its core to others that compute gets it back when their slice of time is
// over. A sleeper is woken before that, as it has not used its own. So where the core is lost again
// and again waits sleep, until sleeping has cost as much as was lost: at most twice of what the
// better of the two would.
type spinPolicy struct {
	max     time.Duration
	procs   atomic.Int32 // how many goroutines of this process run at once
	waits   atomic.Int32 // since these were counted
	kept    atomic.Int64 // own time since the processor was lent, in ns
	average atomic.Int64 // cost of the last waits, in ns; each weighs 1/8
	own     atomic.Int64 // what a wait spins of its goroutine's own time, in ns; an average likewise
	whole   atomic.Int64 // what that takes, with the time of others on the core, in ns
	crowd   atomic.Int32 // how sure it is that others want this core
	pause   atomic.Int32 // where waits are long: how many sleep, about, before some try to spin
	sleeps  atomic.Int32 // how many of these are left
	tries   atomic.Int32 // how many are left that try
	short   atomic.Int32 // how many waits in a row were short, while pause is not 0
	usual   atomic.Int64 // what a wait takes that spins and keeps its core, in ns; an average likewise
	ready   atomic.Int32 // how sure it is that goroutines of this process are ready as a wait first rests
	bound   atomic.Bool  // those who wait are bound to their threads
	lost    atomic.Int64 // to others that compute, and not made up for yet, in ns
	avoids  atomic.Bool  // spinning is given up until that is made up for
	lend    func()       // gives the processor to goroutines of this process
	yield   func()       // gives the core to other processes

	longRest, longTurn time.Duration // on this machine
}

const (
	averageWeight = 8
	// politeAfter is how long a spinner keeps its core to itself where nobody else seems to want
	// it. A message between two spinning nodes takes 1 to 3 µs; a longer wait may be for somebody
	// that needs a core.
	politeAfter = 5 * time.Microsecond
	// lendAfter is how long a spinner keeps its processor where others are left for the goroutines
	// that are ready. To lend it wakes a thread of one of these, which has nothing to do but to
	// take the spinner over: a message that takes 4 µs took 10.
	lendAfter = time.Millisecond
	// longRest is how long giving the core away takes, at least, if somebody else takes it, on a
	// quick machine. With nobody there it takes 0.3 µs. On a slow one it takes up to 1.8 µs, and 4
	// with somebody.
	longRest = 1500 * time.Nanosecond
	// longTurn is how long goroutines of this process have the processor, at least, if they are
	// ready, on a quick machine. To lend it to nobody takes 0.2 µs where no other one is idle.
	longTurn = 500 * time.Nanosecond
	// quickCall is what a system call that does nothing takes on a quick machine, at most.
	quickCall = 150 * time.Nanosecond
	// Each rest that is long makes it surer that there is a crowd, or that others are ready; one
	// that is not, less so.
	crowdGrows = 3
	crowdMax   = 24
	crowded    = 6
	// computing is how long a program has the core, at least, that is not a spinner and gives it
	// away again: its slice is over at a tick, 3 or 4 ms and more. A turn of 16 spinners that all
	// have messages takes 1 to 1.5 ms.
	computing = 2 * time.Millisecond
	// A few losses are no reason not to spin: the system's threads need a core now and then, and
	// of 32 spinners some have their turns cut short together. maxLost bounds for how long a long
	// pause, as of a process that was stopped, has an effect.
	avoidFrom = 20 * time.Millisecond
	maxLost   = 30 * time.Millisecond
	// maxWakeCost bounds what a wait that sleeps costs more than one that spins, or as much as that
	// usually takes does: a longer one has waited for a core, or for somebody's work.
	maxWakeCost = 200 * time.Microsecond
	// longestWait is what a single wait counts at most, in multiples of what it may spin: the host
	// of a virtual machine takes a core away for milliseconds, a few times in a hundred messages.
	longestWait = 2
	// triesInARow is how many waits spin, one after the other, to learn whether that pays by now.
	// Peers who sleep learn it when their tries coincide, which several in a row do sooner.
	triesInARow = 4
	// maxTurn is how many endpoints of this process there may be for each of Go's processors: with
	// more, a turn of all their spinners takes as long as a wait may spin, and who sleeps is woken
	// by a goroutine of the same process, which costs little.
	maxTurn = 32
	// longestPause is how many waits sleep at most before some try; the first pause is of one.
	longestPause = 64
	// recountAfter is how many waits that spin pass between looks at how many processors the
	// process has, which takes a lock of the runtime's: the program may change that, and the
	// runtime does where the quota of a container changes. One that sleeps counts as sleepCounts.
	recountAfter = 1024
	sleepCounts  = 64
)

// endpoints is how many are open in this process. They share its processors, and most likely a
// goroutine waits at each.
var endpoints atomic.Int32

// init begins the policy of an endpoint that is open from now on, until end.
func (p *spinPolicy) init(limit time.Duration) {
	p.max, p.lend, p.yield = limit, runtime.Gosched, yield
	p.recount(recountAfter)
	p.longRest = time.Duration(slowness() * float64(longRest))
	p.longTurn = time.Duration(slowness() * float64(longTurn))
	endpoints.Add(1)
}

// slowness returns by how much this machine is slower than a quick one, at least 1, measured by a
// system call, as giving the core away is one.
var slowness = sync.OnceValue(func() float64 {
	quickest := time.Duration(math.MaxInt64)
	for range 64 { // others may have the core meanwhile, or a tick
		before := clock.Now()
		callNothing()
		quickest = min(quickest, clock.Now().Sub(before))
	}
	return max(1, float64(quickest)/float64(quickCall))
})

func (p *spinPolicy) end() { endpoints.Add(-1) }

// limit returns how much of its own time a wait may spin now; zero is not at all. Where waits are
// long it is zero but for some that try, after pauses each twice as long as the last one.
func (p *spinPolicy) limit() time.Duration {
	switch {
	case p.max < 0 || p.avoids.Load() || p.isThronged():
		return 0
	case time.Duration(p.average.Load()) <= p.max, p.tries.Add(-1) >= 0:
		return p.max
	case p.sleeps.Add(-1) >= 0:
		return 0
	}
	pause := min(max(2*p.pause.Load(), 1), longestPause)
	p.pause.Store(pause)
	p.sleeps.Store(pause - rand.Int32N(pause/4+1)) // peers with equal pauses might never coincide
	p.tries.Store(triesInARow - 1)
	return p.max
}

// isThronged reports whether this process has too many endpoints for their goroutines to spin.
func (p *spinPolicy) isThronged() bool { return endpoints.Load() > maxTurn*p.procs.Load() }

// note takes a finished wait into account, by what it has cost. A single long wait weighs no more
// than longestWait, so that a few pauses in a quick exchange do not end the spinning. A single one
// that is short has it go on: two peers who sleep make each other's waits long, and those that they
// both spin are as short as ever. One that has cost all that it may is not. The pauses begin anew
// once as many in a row were short as try: where one is now and then, the others spin for nothing.
func (p *spinPolicy) note(cost time.Duration) {
	p.recount(1)
	if cost >= p.max {
		p.short.Store(0)
	} else {
		if time.Duration(p.average.Load()) > p.max {
			p.average.Store(int64(p.max))
		}
		if p.pause.Load() > 0 && p.short.Add(1) >= triesInARow {
			p.pause.Store(0)
			p.sleeps.Store(0)
			p.tries.Store(0)
		}
	}
	weigh(&p.average, int64(min(cost, longestWait*max(p.max, 0))))
}

// recount counts some waits, and after enough of them the process's processors. Where others seem
// to be ready, it may be that the caller is bound to its thread.
func (p *spinPolicy) recount(waits int32) {
	n := p.waits.Load() + waits
	if n >= recountAfter {
		n = 0
		p.procs.Store(int32(runtime.GOMAXPROCS(0)))
		p.bound.Store(p.ready.Load() >= crowded && isBound())
	}
	p.waits.Store(n)
}

// isBound reports whether the caller is bound to its thread, as runtime.LockOSThread does it: a
// traceback, which takes some 8 µs, begins with that.
func isBound() bool {
	var b [128]byte
	return bytes.Contains(b[:runtime.Stack(b[:], false)], []byte("locked to thread"))
}

// weigh takes a value into a moving average.
func weigh(average *atomic.Int64, value int64) {
	old := average.Load()
	average.Store(old + (value-old)/averageWeight)
}

// noteSleep takes a wait that slept into account: spinning would have cost its share of that time.
// Where spinning is avoided, nothing is known of that share.
func (p *spinPolicy) noteSleep(spun, slept time.Duration) {
	p.recount(sleepCounts)
	if p.avoids.Load() {
		usual := time.Duration(p.usual.Load())
		p.makeUp(min(max(slept-usual, slept/4), max(usual, maxWakeCost)))
		return
	}
	p.note(spun + time.Duration(float64(slept)*p.share()))
}

// noteKept takes a wait into account that ended while it spun, and did not lose its core.
func (p *spinPolicy) noteKept(took time.Duration) {
	weigh(&p.usual, int64(took))
	if p.lost.Load() > 0 {
		p.makeUp(took)
	}
}

// makeUp takes from what was lost.
func (p *spinPolicy) makeUp(d time.Duration) {
	if p.lost.Add(-int64(d)) <= 0 {
		p.avoids.Store(false)
	}
}

// noteShare learns how much of the time spent spinning was the spinner's own. A wait counts by its
// length: one whose message is there at the first look has all of its time for itself, and tells
// nothing of how crowded the core is.
func (p *spinPolicy) noteShare(own, whole time.Duration) {
	weigh(&p.own, int64(own))
	weigh(&p.whole, int64(whole))
}

// share returns how much of the time spent spinning is the spinner's own, of 1.
func (p *spinPolicy) share() float64 {
	own, whole := p.own.Load(), p.whole.Load()
	if own >= whole {
		return 1
	}
	return float64(own) / float64(whole)
}

// noteAway takes a time into account in which another process had the core. Where goroutines of
// this one have it, a wait that sleeps has to wait for them, too, and more than once.
func (p *spinPolicy) noteAway(away time.Duration) {
	if lost := int64(away) - p.usual.Load(); away > computing && lost > 0 {
		lost = min(max(p.lost.Load(), 0)+lost, int64(maxLost))
		p.lost.Store(lost)
		if lost >= int64(avoidFrom) {
			p.avoids.Store(true)
		}
	}
}

// isCrowded reports whether others seem to want this core.
func (p *spinPolicy) isCrowded() bool { return p.crowd.Load() >= crowded }

// staysAwake reports whether a goroutine that sleeps for messages may stay awake for a stream of
// them: not where other spinners want the core, or may want it. Those that compute get it soon
// enough.
func (p *spinPolicy) staysAwake() bool {
	return p.max > 0 && !p.isThronged() && (!p.isCrowded() || p.avoids.Load())
}

// lends reports whether the caller is to lend its processor, which it has had for so long since the
// last call, to goroutines of this process that are ready and have none: where so many spin, at its
// endpoint and at others, that none may be left.
func (p *spinPolicy) lends(own time.Duration, spinners int32) bool {
	if p.kept.Add(int64(own)) < int64(lendAfter) && !p.hasAll(spinners) {
		return false
	}
	p.kept.Store(0)
	return true
}

// hasAll reports whether so many spinners, and one at each other endpoint, may have all of the
// process's processors, and can lend them: to lend it takes one who is bound to its thread two
// switches of threads, also where nobody is ready.
func (p *spinPolicy) hasAll(spinners int32) bool {
	return endpoints.Load()-1+spinners >= p.procs.Load() && !p.bound.Load()
}

// lendsFirst reports whether a wait lends its processor after its first look: to the goroutine that
// it has made ready, as a server's that answers, or that waits for what came last.
func (p *spinPolicy) lendsFirst(spinners int32) bool {
	return p.ready.Load() >= crowded && p.hasAll(spinners)
}

// weighRest takes into account how long it took to give something away.
func weighRest(sure *atomic.Int32, took, long time.Duration) {
	n := sure.Load()
	if took > long {
		sure.Store(min(n+crowdGrows, crowdMax))
	} else if n > 0 {
		sure.Store(n - 1)
	}
}

// rest gives the core away: to goroutines of this process, and, after spinning for a while, to
// other processes. now is the time of the call; own and spinners are as in lends, and spun is how
// long the wait has spun. It returns the time at which the caller has the core again.
func (p *spinPolicy) rest(now monotime.Time, own, spun time.Duration, spinners int32) monotime.Time {
	lent := p.lends(own, spinners)
	if lent {
		p.lend()
	}
	back := clock.Now()
	if lent && spun == own && p.hasAll(spinners) { // the wait's first rest; else an idle processor's thread woke
		weighRest(&p.ready, back.Sub(now), p.longTurn)
	}
	if spun > politeAfter || p.isCrowded() {
		yielded := back
		p.yield()
		back = clock.Now()
		p.noteAway(back.Sub(yielded))
	}
	weighRest(&p.crowd, back.Sub(now), p.longRest)
	return back
}
