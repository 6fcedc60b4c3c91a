package rpc

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
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

// A node that acknowledges what comes and never answers holds up nobody else's calls: one that
// refuses them is found, and the domain closes.
func TestSweep_BesideANodeThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		d, err := Open(eps[0], Config{})
		if err != nil {
			t.Fatal(err)
		}
		var others [3]*memfifo.Domain // another program's
		for node := 1; node < len(others); node++ {
			if others[node], err = memfifo.Open(eps[node], memfifo.Config{Port: DefaultPort}); err != nil {
				t.Fatal(err)
			}
			defer others[node].Close()
		}
		full, err := others[1].NewFIFO(2, make([]byte, 1<<10)) // behind which all is held
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		for range 4 {
			if err := d.layer.Domain.Remote(full.Key()).Push(t.Context(), make([]byte, 500)); err != nil {
				t.Fatal(err)
			}
		}
		silent := make(chan error, 1)
		go func() { _, err := d.Call(t.Context(), 1, "x", nil); silent <- err }()
		time.Sleep(5 * memfifo.DefaultPeerTimeout)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		if _, err = d.Call(ctx, 2, "x", nil); !errors.Is(err, ErrNoService) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took > 2*memfifo.DefaultPeerTimeout {
			t.Errorf("it took %v", took)
		}
		select {
		case err := <-silent:
			t.Errorf("the node has answered: %v", err)
		default:
		}
		begun = time.Now()
		_ = d.Close()
		if took := time.Since(begun); took > 3*memfifo.DefaultPeerTimeout {
			t.Errorf("Close took %v", took)
		}
		if err := <-silent; !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}
