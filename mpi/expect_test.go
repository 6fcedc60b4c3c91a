package mpi

import (
	"testing"
	"testing/synctest"
	"time"
)

// A process that is found down, as it has begun anew, just before a wait has it probed is not probed
// for ever.
func TestExpect_DownMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := openTwo(t, Config{})
		p := w.all[1]
		w.mu.Lock()
		w.fail(p.ID, ErrProcessFailed)
		w.mu.Unlock()
		w.expect([]*process{p}) // by a wait that has begun before
		time.Sleep(time.Minute)
		before := w.ep.Counters().TxMessages
		time.Sleep(time.Minute)
		if n := w.ep.Counters().TxMessages - before; n > 0 {
			t.Errorf("%d frames in a minute to a process that is down", n)
		}
	})
}
