package rpc

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// Two goroutines stay after a burst, for the next one.
func TestWorkers_StayAfterABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(mcdtest.Open(t, 1, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})[0], Config{})
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		handler := func(_ context.Context, _ mcd.NodeID, _, resp []byte) ([]byte, error) { <-hold; return resp, nil }
		if _, err := d.Serve("x", ServerConfig{Handler: handler}); err != nil {
			t.Fatal(err)
		}
		workers := func() (all, idle int) {
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.jobs.workers, len(d.jobs.idle)
		}
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() { _, _ = d.Call(t.Context(), 0, "x", nil) })
		}
		if all, idle := workers(); all != 5 || idle != 0 {
			t.Errorf("%d workers, %d of them idle", all, idle)
		}
		close(hold)
		calls.Wait()
		if all, idle := workers(); all != 2 || idle != 2 {
			t.Errorf("%d workers are left, %d of them idle; want 2", all, idle)
		}
		if n := len(d.jobs.cancels) + len(d.pending); n > 0 {
			t.Errorf("%d calls that are over are kept", n)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Few buffers are kept, and no long ones; each is handed out once.
func TestSpare_IsBounded(t *testing.T) {
	var s spare
	for range 100 {
		s.putMemory(make([]byte, 10))
		s.putCall(&call{response: make([]byte, 1)})
	}
	seen := map[*byte]bool{}
	for i := range 65 {
		b := s.getMemory()
		if (b == nil) != (i == 64) || len(b) != 0 {
			t.Fatalf("buffer %d of 64: %d bytes, capacity %d", i, len(b), cap(b))
		}
		if b != nil && seen[&b[:1][0]] {
			t.Fatalf("buffer %d is handed out twice", i)
		} else if b != nil {
			seen[&b[:1][0]] = true
		}
	}
	if n := len(s.calls); n != 64 {
		t.Errorf("%d calls are kept, want 64", n)
	}
	c := s.getCall()
	if c.response != nil || len(s.calls) != 63 || s.getCall() == c {
		t.Errorf("%+v", c)
	}
	s = spare{}
	s.putMemory(nil)
	s.putMemory(make([]byte, 64<<10+1))
	s.putCall(&call{buf: make([]byte, 64<<10+1)})
	if len(s.memory)+len(s.calls) > 0 {
		t.Error("what is long is kept")
	}
	s.putMemory(make([]byte, 64<<10))
	last := &call{buf: make([]byte, 64<<10)}
	s.putCall(last)
	if len(s.memory) != 1 || len(s.calls) != 1 || s.getCall() != last || s.getCall() == nil || s.getMemory() == nil {
		t.Error("what is not is not")
	}
}
