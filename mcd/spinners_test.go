package mcd

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport/fabric"
)

// Where maxSpinners goroutines spin, the next one sleeps at once, and the last spinner leaves the
// link to the goroutine that wakes the sleeper.
func TestSpinnersAreLimited(t *testing.T) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	links, err := f.AddSwitch("").Links(1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(Config{Spin: time.Hour}, links[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var waits [maxSpinners + 1]Completion
	ended := make(chan error, len(waits))
	wait := func(k int, until func() bool) {
		go func() { ended <- e.Await(ctx, &waits[k]) }()
		for !until() && ctx.Err() == nil {
			runtime.Gosched()
		}
	}
	for k := range maxSpinners {
		wait(k, func() bool { return e.spinners.Load() == int32(k+1) })
	}
	last := &waits[maxSpinners]
	wait(maxSpinners, last.asleep.Load)
	for k := range maxSpinners {
		waits[k].Complete(nil)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	for !e.tryLockPoll() {
		runtime.Gosched()
	}
	masked := e.wakeupsOff
	e.unlockPoll()
	if masked {
		t.Error("wake-ups are masked, somebody sleeps, and nobody polls")
	}
	if n := e.excess.Load(); n != 1 {
		t.Errorf("%d sleep in excess, want 1", n)
	}
	last.Complete(nil)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if e.spinners.Load() != 0 || e.excess.Load() != 0 {
		t.Errorf("%d spin and %d sleep in excess after all waits", e.spinners.Load(), e.excess.Load())
	}
}
