package launch

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// A node that is interrupted, or fails, ends the others, also one that still waits for the third:
// they would wait for it, and blame it for its silence.
func TestRunAlike_EndsTheOthers(t *testing.T) {
	for _, c := range []struct {
		name    string
		nodes   int // that are there, of three
		fails   error
		want    string
		slowest time.Duration // for the others to be told
	}{
		{"interrupted", 3, context.Canceled, "node 0 has ended without a result: interrupted", 0},
		{"failed", 3, errors.New("no such size"), "node 0 has ended without a result: no such size", hearTime},
		{"while they compare", 2, context.Canceled, "node 0 has ended without a result: interrupted", tellEach},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				others := make(chan error, 2)
				ended := make(chan time.Time, 2)
				for _, ep := range eps[1:c.nodes] {
					go func() {
						err := runAlike(t.Context(), ep, "rawlane", func(ctx context.Context) error {
							<-ctx.Done()
							ended <- time.Now()
							return ctx.Err()
						})
						others <- err
					}()
				}
				began := make(chan time.Time, 1)
				time.AfterFunc(time.Second, func() {
					if began <- time.Now(); errors.Is(c.fails, context.Canceled) {
						interrupt()
					}
				})
				err := runAlike(ctx, eps[0], "rawlane", func(ctx context.Context) error {
					began <- <-began
					return c.fails
				})
				if !errors.Is(err, c.fails) {
					t.Errorf("node 0: %v, want %v", err, c.fails)
				}
				start := <-began
				for range c.nodes - 1 {
					if err := <-others; err == nil || err.Error() != c.want {
						t.Errorf("another node: %v, want %s", err, c.want)
					}
				}
				for range len(ended) {
					if d := (<-ended).Sub(start); d > c.slowest {
						t.Errorf("it was told %v later", d)
					}
				}
				if d := time.Since(start); d > AskTimeout/2 {
					t.Errorf("all have ended %v later", d)
				}
			})
		})
	}
}

// A part that fails since another node's has ended, as it closes what it has with that node, says
// why that one has.
func TestRunAlike_FailsByTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		ctx, interrupt := context.WithCancel(t.Context())
		closed, other := make(chan struct{}), make(chan error, 1)
		go func() {
			other <- runAlike(t.Context(), eps[1], "rawlane", func(context.Context) error {
				<-closed
				return errors.New("node 0 said goodbye")
			})
		}()
		err := runAlike(ctx, eps[0], "rawlane", func(context.Context) error {
			interrupt()
			close(closed)
			time.Sleep(hearTime / 2)
			return net.ErrClosed
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		const want = "node 0 has ended without a result: interrupted"
		if err := <-other; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// A part that fails as the endpoint has ended says why, and nobody says it again.
func TestRunAlike_TheEndpointEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ep := mcdtest.Open(t, 1, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})[0]
		failed := errors.New("barrier 0: all links are gone")
		err := runAlike(t.Context(), ep, "rawlane", func(context.Context) error {
			return errors.Join(failed, ep.Close())
		})
		if err == nil || err.Error() != failed.Error() {
			t.Errorf("%v, want %v alone", err, failed)
		}
	})
}

// A node whose part is done is not told of one that ends behind it.
func TestRunAlike_DoneIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		done := make(chan error, 1)
		go func() {
			done <- runAlike(t.Context(), eps[1], "rawlane", func(context.Context) error { return nil })
		}()
		failed := errors.New("cannot print")
		err := runAlike(t.Context(), eps[0], "rawlane", func(context.Context) error {
			time.Sleep(time.Minute)
			return failed
		})
		if !errors.Is(err, failed) || <-done != nil {
			t.Errorf("%v, and the node that was done has failed", err)
		}
	})
}
