package rpc

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// The context of a handler that has returned takes no memory, though its deadline is far ahead.
func TestCallContext_LeavesNoTimer(t *testing.T) {
	const calls = 20
	var all []weak.Pointer[callContext]
	for range calls {
		c := newCallContext(time.Hour)
		_ = c.Done()
		c.end(context.Canceled)
		all = append(all, weak.Make(c))
	}
	left := calls
	for i := 0; i < 10 && left > 1; i++ { // a register may hold the last one
		runtime.GC()
		left = 0
		for _, w := range all {
			if w.Value() != nil {
				left++
			}
		}
	}
	if left > 1 {
		t.Errorf("%d of %d contexts take memory", left, calls)
	}
}

// A domain whose endpoint is closed, and that nobody closes, leaves no goroutine: one would keep the
// memory of both.
func TestDomain_LeavesNothingBehindItsEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range eps {
			if _, err := Open(e, Config{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}) // it panics where a goroutine is left
}
