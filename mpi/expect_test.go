package mpi

import (
	"errors"
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

// A process that has begun anew is not probed for ever, as an epoch at its former self's memory was
// asked for.
func TestExpect_DownBeforeAnEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		wins := make([]*Win[int], 2)
		inBoth(t, func(c *Comm) (err error) {
			wins[c.Rank()], err = NewWin(t.Context(), c, make([]int, 1))
			return err
		}, w, other)
		_ = other.Close()
		again, err := Open(other.ep, Config{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := wins[0].Start(t.Context(), 1); !errors.Is(err, ErrProcessFailed) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		before := w.ep.Counters().TxMessages
		time.Sleep(time.Minute)
		if n := w.ep.Counters().TxMessages - before; n > 0 {
			t.Errorf("%d frames in a minute to a process that is down", n)
		}
		closeTwo(t, w, again)
	})
}
