package hrtimer

import (
	"testing"
	"time"
)

// A timer that is postponed again and again does not set its timerfd each time.
func TestTimer_PostponeLeavesTheTimerfdAlone(t *testing.T) {
	timer := New(true, func() {})
	defer timer.Stop()
	for range 1000 { // the machine may stand still between two calls, but not each time
		timer.Postpone(time.Hour)
		at := timer.fine.at
		timer.Postpone(time.Hour)
		if timer.fine.at == at {
			return
		}
	}
	t.Error("each call sets the timerfd")
}
