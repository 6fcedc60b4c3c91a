package mpi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// A process that fails in the making of a window once it has given the others what their Dup takes is
// in none of the steps behind it: the others hear so, whether they are there before or after that.
func TestLeave_TheMakingOfAWindow(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var messages []Algorithm // and no multicasts, which tell so by themselves
			for _, a := range algorithms {
				if !a.multicasts() {
					messages = append(messages, a)
				}
			}
			worlds := openEach(t, mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}), Config{Algorithms: messages})
			inBoth(t, func(c *Comm) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var err error
				if c.Rank() == 2 {
					err = c.do(ctx, "split", func(o collective) error {
						_ = gatherAll(o, []int{0, 2, 0}, make([]int, 9))
						time.Sleep(after)
						return ErrWithdrawn
					})
				} else {
					_, err = NewWin(ctx, c, []int{0})
				}
				if !errors.Is(err, ErrWithdrawn) {
					t.Errorf("rank %d, after %v: %v", c.Rank(), after, err)
				}
				if n := c.w.Counters().Malformed; n != 0 || len(c.windows) != 0 {
					t.Errorf("rank %d: %d records are malformed, %d windows", c.Rank(), n, len(c.windows))
				}
				_, err = c.Agree(ctx, 0)
				return err
			}, worlds...)
			inBoth(t, func(c *Comm) error { return c.w.Close() }, worlds...)
		})
	}
}

// Who hears that a process has left the Dup of a window between its last message and the window
// knows it of the window, too.
func TestLeave_BeforeTheWindowIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		d := &Comm{w: w, context: 2, members: w.comm.members}
		err := w.comm.do(t.Context(), "split", func(o collective) error {
			w.mu.Lock()
			w.comm.hearLeft(leaver{rank: 1, from: o.tag, to: o.tag})
			w.run()
			o.adopt(d)
			return nil
		})
		if err != nil || len(d.leavers) != 1 || !d.leavers[0].covers(1) || len(w.comm.leavers) != 0 {
			t.Errorf("%v, %+v, of the communicator %+v", err, d.leavers, w.comm.leavers)
		}
		closeTwo(t, w, other)
	})
}
