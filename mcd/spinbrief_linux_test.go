package mcd

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport/fabric"
)

// threadTime is the processor time of the thread that calls it.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// Where nothing comes, a goroutine that waits with default settings sleeps soon: it has little of its
// core's time. However busy the machine is, that time is its own.
func TestDefaultSpin_IsBrief(t *testing.T) {
	const tries, want = 100, 10 * time.Millisecond
	best := time.Hour
	for range tries {
		links, err := fabric.Links(1)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open(Config{}, links[0])
		if err != nil {
			t.Fatal(err)
		}
		var c Completion
		ended, spent := make(chan error), time.Duration(0)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := threadTime(t)
			err := e.Await(context.Background(), &c)
			spent = threadTime(t) - before
			ended <- err
		}()
		for !c.asleep.Load() {
			time.Sleep(time.Millisecond)
		}
		c.Complete(nil)
		if err := errors.Join(<-ended, e.Close()); err != nil {
			t.Fatal(err)
		}
		if best = min(best, spent); best < want {
			return
		}
	}
	t.Errorf("the quickest of %d waits spun for %v of its core, want less than %v", tries, best, want)
}
