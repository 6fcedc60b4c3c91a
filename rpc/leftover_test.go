package rpc

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"
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
