package rpc

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
)

// leavingOnce is a context that ends the goroutine that first waits with it, as what another port
// receives may do where the wait polls.
type leavingOnce struct {
	context.Context
	left *atomic.Bool
}

func (c leavingOnce) Done() <-chan struct{} {
	if !c.left.Swap(true) {
		runtime.Goexit()
	}
	return c.Context.Done()
}

// A sweep in whose wait another port's function ends the goroutine has a successor: the probing of
// nodes without calls ends.
func TestSweep_HasASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, sent := openTwo(t)
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error)
		go func() { _, err := d.Call(ctx, 1, "wait", nil); called <- err }()
		synctest.Wait()
		var left atomic.Bool
		d.mu.Lock()
		d.ended = leavingOnce{d.ended, &left}
		d.mu.Unlock()
		time.Sleep(2 * memfifo.DefaultPeerTimeout)
		if !left.Load() {
			t.Fatal("the sweep has not waited")
		}
		cancel()
		<-called
		wantNoFrames(t, sent)
	})
}
