package sim

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Queue is virtual time: functions, run in the order of their instants. The zero Queue is ready, empty, at the
// zero monotime.Time. It is not bounded: each event was asked for by the caller. It keeps
// the memory of the most events that ever waited at once, for those to come. It must not be copied once used.
type Queue struct {
	now   monotime.Time
	len   int
	wheel wheel
}

// Now returns the current instant: that of the event which runs, or ran last, or where Run ended.
func (q *Queue) Now() monotime.Time { return q.now }

// Len returns how many events are yet to run.
func (q *Queue) Len() int { return q.len }

// At has f run at t. Events of one instant run in the order in which they were scheduled, also those that
// are scheduled for this very instant while it runs. A t in the past panics: the caller's time went back.
func (q *Queue) At(t monotime.Time, f func()) {
	if t.Before(q.now) {
		panic(fmt.Sprintf("sim: an event for %v, but it is %v already (%d events wait)", t, q.now, q.len))
	}
	q.len++
	q.wheel.push(event{int64(t.Since()), f})
}

// After has f run d from now; a negative d panics.
func (q *Queue) After(d time.Duration, f func()) { q.At(q.now.Add(d), f) }

// Step moves to the next event and runs it. It returns false if there is none.
func (q *Queue) Step() bool {
	if q.len == 0 {
		return false
	}
	q.len--
	e := q.wheel.pop()
	q.now = monotime.At(time.Duration(e.at))
	e.f()
	return true
}

// Run runs all events not later than until, among them those that these events schedule, then moves Now to
// until. It returns how many ran. If until is past already, it does nothing.
func (q *Queue) Run(until monotime.Time) int {
	ran := 0
	for q.len > 0 && q.wheel.earliest() <= int64(until.Since()) {
		q.Step()
		ran++
	}
	if q.now.Before(until) {
		q.now = until
	}
	return ran
}
