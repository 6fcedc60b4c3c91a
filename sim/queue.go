package sim

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/timewheel"
)

// Queue is virtual time: functions, run in the order of their instants. The zero Queue is empty,
// at the zero monotime.Time. It has no bound of its own: the caller has asked for each event. It
// keeps the memory of the most events that ever waited at once. It must not be copied after use.
type Queue struct {
	now   monotime.Time
	wheel timewheel.Wheel[func()]
}

// Now returns the current instant: that of the running event, or of the last one, or where Run
// ended.
func (q *Queue) Now() monotime.Time { return q.now }

// Len returns how many events are yet to run.
func (q *Queue) Len() int { return q.wheel.Len() }

// At schedules f for t. Events of one instant run in the order in which they were scheduled; an
// event that is scheduled for this very instant runs behind them. A t in the past panics: the
// caller's time went back.
func (q *Queue) At(t monotime.Time, f func()) {
	if t.Before(q.now) {
		panic(fmt.Sprintf("sim: an event for %v, but it is %v already (%d events wait)", t, q.now, q.Len()))
	}
	q.wheel.Push(t, f)
}

// After schedules f for d from now; a negative d panics.
func (q *Queue) After(d time.Duration, f func()) { q.At(q.now.Add(d), f) }

// Step moves to the next event and runs it. It returns false if there is none.
func (q *Queue) Step() bool {
	if q.wheel.Len() == 0 {
		return false
	}
	var f func()
	q.now, f = q.wheel.Pop()
	f()
	return true
}

// Run runs all events not later than until, also those that these schedule, then moves Now to
// until. It returns how many ran. If until is past, it does nothing.
func (q *Queue) Run(until monotime.Time) int {
	ran := 0
	for q.wheel.Len() > 0 && !q.wheel.Next().After(until) {
		q.Step()
		ran++
	}
	if q.now.Before(until) {
		q.now = until
	}
	return ran
}
