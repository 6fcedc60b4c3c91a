package mcd_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// A wait for a completion of a layer above ends when the endpoint is closed, as nothing will make
// progress any more, and so does one that begins later. A completion that is done by then counts.
func TestAwait_EndsWithTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, 1, 1, func(cfg *mcd.Config) { cfg.Spin = -1 })[0] // as nothing here takes time
		ended := make(chan error)
		go func() {
			var never mcd.Completion
			ended <- e.Await(context.Background(), &never)
		}()
		synctest.Wait()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		var never, done mcd.Completion
		done.Complete(nil)
		for what, err := range map[string]error{"slept": <-ended, "later": e.Await(context.Background(), &never)} {
			if !errors.Is(err, mcd.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := e.Await(context.Background(), &done); err != nil {
			t.Errorf("done before: %v", err)
		}
	})
}

// Close, or the end of its context, ends a wait that spins, however long Config.Spin is. In a bubble
// no time passes while it spins, so nothing else ends it: on a crowded machine it would sleep soon.
func TestAwait_SpinEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, 1, 1, func(cfg *mcd.Config) { cfg.Spin = time.Hour })[0]
		ctx, cancel := context.WithCancel(context.Background())
		for _, c := range []struct {
			end  func()
			want error
		}{
			{cancel, context.Canceled},
			{func() { _ = e.Close() }, mcd.ErrClosed},
		} {
			ended := make(chan error)
			go func() {
				var never mcd.Completion
				ended <- e.Await(ctx, &never)
			}()
			for e.Progress(); e.Progress(); { // until the goroutine leads, most likely
			}
			c.end()
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			ctx = context.Background()
		}
	})
}
