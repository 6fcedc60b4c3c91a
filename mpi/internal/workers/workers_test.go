package workers

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idleNow returns how many goroutines wait for a function, when all others are blocked.
func (p *Pool) idleNow() int {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

func TestPool_KeepsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pool
		var calls atomic.Int32
		for range 10 {
			p.Go(func() { calls.Add(1) })
			if n := p.idleNow(); n != 1 {
				t.Fatalf("%d goroutines wait, want that of one function at a time", n)
			}
		}
		done := make(chan struct{})
		for range 3 * maxIdle {
			p.Go(func() { calls.Add(1); <-done })
		}
		if n := p.idleNow(); n != 0 {
			t.Errorf("%d goroutines wait, and all have a function", n)
		}
		close(done)
		if n := p.idleNow(); n != maxIdle {
			t.Errorf("%d goroutines wait, want %d at most", n, maxIdle)
		}
		p.Wait()
		if n := calls.Load(); n != 10+3*maxIdle {
			t.Errorf("%d calls, want %d", n, 10+3*maxIdle)
		}
	})
}

// Wait waits for functions, also for those that they call for meanwhile, and keeps no goroutine.
func TestPool_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pool
		p.Go(func() {})
		p.idleNow()
		first, second := make(chan struct{}), make(chan struct{})
		p.Go(func() {
			<-first
			p.Go(func() { <-second })
		})
		var waited atomic.Bool
		over := make(chan struct{})
		go func() {
			p.Wait()
			waited.Store(true)
			close(over)
		}()
		for _, c := range []chan struct{}{first, second} {
			synctest.Wait()
			if waited.Load() {
				t.Error("Wait has returned before the functions")
			}
			close(c)
		}
		<-over
		if n := p.idleNow(); n != 0 {
			t.Errorf("%d goroutines wait behind Wait", n)
		}
	})
}

// A function that ends its goroutine, as FailNow of a test does, takes no other with it.
func TestPool_FunctionThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pool
		called := false
		p.Go(func() {})
		p.idleNow()
		p.Go(runtime.Goexit)
		if n := p.idleNow(); n != 0 {
			t.Errorf("%d goroutines wait, of one that has ended", n)
		}
		p.Go(func() { called = true })
		p.Wait()
		if !called {
			t.Error("no call behind it")
		}
	})
}
