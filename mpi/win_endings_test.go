package mpi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An Unlock that has given its lock back, and is about to have its updates confirmed, ends where the
// window is freed, or the world closed, just then: nobody would take the answer.
func TestWin_EndsBeforeItsUpdatesAreConfirmed(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(v *window) error
		want error
	}{
		"freed":  {func(v *window) error { v.parent.Revoke(); return v.Free(context.Background()) }, ErrFreed},
		"closed": {func(v *window) error { return v.w.Close() }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, other := openTwo(t, Config{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var ranks sync.WaitGroup
				windows := make([]*Win[int64], 2)
				for k, w := range []*World{w, other} {
					ranks.Go(func() {
						c, err := w.Comm().Dup(ctx)
						if err == nil {
							windows[k], err = NewWin(ctx, c, make([]int64, 1))
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				ranks.Wait()
				v := windows[0].window
				at := 1 - v.comm.Rank()
				err := v.Lock(ctx, at, Shared)
				err = errors.Join(err, windows[0].Accumulate(ctx, []int64{1}, at, 0, Add))
				if err != nil {
					t.Fatal(err)
				}
				w.mu.Lock()
				w.me.busy = true                            // something is on its way, which Close waits for
				v.unlock(v.members[at], v.members[at].lock) // as Unlock does
				ranks.Go(func() {
					if err := end.do(v); err != nil {
						t.Error(err)
					}
				})
				for w.mu.Lock(); !w.closed && w.windows[v.comm.context] == v; w.mu.Lock() {
					w.mu.Unlock()
				}
				w.mu.Unlock()
				if err := v.flush(ctx, v.members[at]); !errors.Is(err, end.want) {
					t.Errorf("%v, want %v", err, end.want)
				}
				w.mu.Lock()
				w.me.busy = false
				w.idle.Broadcast()
				w.mu.Unlock()
				ranks.Wait()
				closeTwo(t, w, other)
			})
		})
	}
}
