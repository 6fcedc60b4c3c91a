package standstill

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
)

func TestWatch(t *testing.T) {
	const most = 2 * time.Second
	for name, c := range map[string]struct {
		since, ran, stood time.Duration
	}{
		"at once":           {0, 0, 0},
		"a little later":    {time.Millisecond, time.Millisecond, 0},
		"as late as may be": {most, most, 0},
		"the machine stood": {time.Minute, most, time.Minute - most},
	} {
		start := monotime.At(time.Hour)
		w := Start(start, most)
		if ran := w.Look(start.Add(c.since)); ran != c.ran || w.Stood() != c.stood {
			t.Errorf("%s: ran for %v, stood for %v; want %v, %v", name, ran, w.Stood(), c.ran, c.stood)
		}
		if ran := w.Look(start.Add(c.since + time.Millisecond)); ran != time.Millisecond || w.Stood() != c.stood {
			t.Errorf("%s: ran for %v in the next millisecond, stood for %v", name, ran, w.Stood())
		}
	}
}

// Who looks often does not take a moment without a core for a standstill of the machine.
func TestWatch_LateIsNoStandstill(t *testing.T) {
	start := monotime.At(time.Hour)
	w := Start(start, 10*time.Millisecond)
	if ran := w.Look(start.Add(Least)); ran != 10*time.Millisecond || w.Stood() != 0 {
		t.Errorf("ran for %v, stood for %v", ran, w.Stood())
	}
}

// Where the machine runs the context is as one of package context.
func TestWithTimeout(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 1, time.Millisecond, 12345678, time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			ctx, cancel := WithTimeout(t.Context(), d)
			child, cancelChild := context.WithCancel(ctx)
			defer cancelChild()
			if ctx.Err() != nil && d > 0 {
				t.Errorf("%v: over at once", d)
			}
			<-child.Done()
			if took := time.Since(start); took != max(d, 0) {
				t.Errorf("%v: over after %v", d, took)
			}
			cancel() // changes nothing any more
			for _, err := range []error{ctx.Err(), child.Err(), context.Cause(ctx), context.Cause(child)} {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v: %v", d, err)
				}
			}
		})
	}
}

// The time of a machine that stood still does not count, whenever it did, and however often.
func TestWithTimeout_Standstill(t *testing.T) {
	const d, still = 30 * time.Second, time.Minute
	for _, before := range []time.Duration{0, 10 * time.Second, d - time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := WithTimeout(t.Context(), d)
			defer cancel()
			start := time.Now()
			time.Sleep(before)
			synctest.Wait()
			for range 2 {
				// The look that is due comes so late.
				ctx.(*timeout).timer.Stop()
				time.Sleep(still)
				ctx.(*timeout).look(clock.Now())
				if d-before > 2*Least && ctx.Err() != nil {
					t.Fatalf("over %v after the start", time.Since(start))
				}
			}
			<-ctx.Done()
			ran := time.Since(start) - 2*still
			if ran < d-2*Least || ran > d {
				t.Errorf("after %v, two standstills of %v: over when it ran for %v, want %v less what may pass unseen",
					before, still, ran, d)
			}
		})
	}
}

// A parent's end, and its deadline, end the context; so does its cancel function, once and for all.
func TestWithTimeout_OtherEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancelParent := context.WithTimeout(t.Context(), time.Second)
		ctx, cancel := WithTimeout(parent, time.Minute)
		at, ok := ctx.Deadline()
		if want, _ := parent.Deadline(); !ok || !at.Equal(want) {
			t.Errorf("deadline %v, %t; want the parent's", at, ok)
		}
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("a parent's deadline: %v", ctx.Err())
		}
		cancel()
		cancelParent()

		why := errors.New("interrupted")
		cause, end := context.WithCancelCause(t.Context())
		ctx, cancel = WithTimeout(cause, time.Minute)
		end(why)
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), why) {
			t.Errorf("a parent that is cancelled: %v, %v", ctx.Err(), context.Cause(ctx))
		}
		cancel()

		ctx, cancel = WithTimeout(t.Context(), time.Minute)
		cancel()
		time.Sleep(time.Hour)
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("cancelled: %v", ctx.Err())
		}
	})
}
