// Package standstill measures waits by the time for which this machine ran.
//
// A machine may stand still as a whole: a virtual one does while its host takes a copy of it, for a
// minute and more, and a process does that was stopped. The monotonic clock goes on meanwhile. Who
// waits for others by it finds the time over, and the others silent, as it goes on: before it has
// read what they have sent, or before those that stood still with it could send anything.
//
// That a machine ran shows in what it did. Who waits looks at the clock again and again, and of the
// time between two looks no more counts than a machine that runs lets pass.
package standstill

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Least is how late a timer is only if the whole machine stood still: that others want its cores
// explains less.
const Least = time.Second

// Watch is a stopwatch that stands still with the machine. Start makes one.
type Watch struct {
	most  time.Duration
	last  monotime.Time
	stood time.Duration
}

// Start returns a Watch that is looked at from now on, several times in the duration most if the
// machine runs.
func Start(now monotime.Time, most time.Duration) Watch { return Watch{most: most, last: now} }

// Look returns for how long the machine ran since the last look.
func (w *Watch) Look(now monotime.Time) time.Duration {
	since := now.Sub(w.last)
	w.last = now
	if since > max(w.most, Least) {
		w.stood += since - w.most
	}
	return min(since, w.most)
}

// Stood returns how long the machine stood still, as far as it did for longer than Least at a
// time.
func (w *Watch) Stood() time.Duration { return w.stood }
