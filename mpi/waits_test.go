package mpi

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// openTwo opens the worlds of two processes.
func openTwo(t *testing.T, cfg Config) (w, other *World) {
	t.Helper()
	worlds := openEach(t, mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}), cfg)
	return worlds[0], worlds[1]
}

// openFaulty opens two worlds, and returns the links through which they hear each other, which have
// no faults yet.
func openFaulty(t *testing.T) (worlds []*World, links []*fault.Link) {
	t.Helper()
	eps := mcdtest.Open(t, 2, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			f, err := fault.New(l, rand.New(rand.NewPCG(1, uint64(node))), fault.Config{})
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, f)
			return f
		},
	})
	return openEach(t, eps, Config{}), links
}

// openEach opens a world at each endpoint.
func openEach(t *testing.T, eps []*mcd.Endpoint, cfg Config) (worlds []*World) {
	t.Helper()
	for _, ep := range eps {
		w, err := Open(ep, cfg)
		if err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, w)
	}
	return worlds
}

func closeTwo(t *testing.T, w, other *World) {
	t.Helper()
	if err := errors.Join(w.Close(), other.Close()); err != nil {
		t.Error(err)
	}
}

// A probe that waits looks again when a message has come, and not meanwhile.
func TestProbe_LooksOnceAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		looks := 0
		look := func(e *matching.Engine, q *matching.Pattern) *matching.Message {
			if looks++; looks > 100 {
				return &matching.Message{} // it would go on for ever
			}
			return e.Probe(q)
		}
		const others = 3
		sent := make(chan error)
		go func() {
			for tag := range others + 1 {
				time.Sleep(time.Second)
				if err := Send(t.Context(), other.Comm(), []byte{1}, 0, tag); err != nil {
					sent <- err
				}
			}
			sent <- nil
		}()
		if m, err := w.Comm().await(t.Context(), 1, others, look); err != nil || m.status.Tag != others || looks > others+2 {
			t.Errorf("%+v, %v: it has looked %d times", m, err, looks)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if len(w.probes) > 0 {
			t.Error("it is still looked for, and its sender given more credit")
		}
		closeTwo(t, w, other)
	})
}

// A request that is complete is waited for until nobody uses its memory any more.
func TestWait_WhileItsMemoryIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		r := Irecv(w.Comm(), make([]byte, 4), 1, 0)
		r.queued.Add(2) // as two items that are carried out
		w.mu.Lock()
		w.complete(r, nil)
		w.mu.Unlock()
		done := make(chan error, 1)
		go func() { _, err := r.Wait(t.Context()); done <- err }()
		for left := range 2 {
			synctest.Wait()
			if len(done) > 0 {
				t.Errorf("the wait has ended, and %d use the memory", 2-left)
			}
			w.mu.Lock()
			w.drop(item{request: r})
			w.mu.Unlock()
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		closeTwo(t, w, other)
	})
}

// A receive whose bytes were read at the sender is used by nobody any more once it is complete.
func TestWait_AfterAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		r := Irecv(w.Comm(), make([]byte, 100_000), AnySource, 0)
		if err := Send(t.Context(), other.Comm(), make([]byte, 100_000), 0, 0); err != nil {
			t.Error(err)
		}
		if _, err := r.Wait(t.Context()); err != nil || r.queued.Load() != 0 || other.Counters().Requested != 1 {
			t.Errorf("%v; used by %d, %+v", err, r.queued.Load(), other.Counters())
		}
		closeTwo(t, w, other)
	})
}

// The contexts that two processes give to communicators are all different, and leave the lowest bit to
// collective operations.
func TestNewContext_AreDifferent(t *testing.T) {
	given := map[uint32]bool{}
	all := make([]*process, 50_000)
	for rank := range matching.Rank(2) {
		w := &World{all: all, me: &process{rank: rank}}
		for range w.maxContexts() {
			context := w.newContext()
			if context&1 != 0 || given[context] {
				t.Fatalf("rank %d gives %#x, which is odd or was given: %v", rank, context, given[context])
			}
			given[context] = true
		}
		if context := w.newContext(); context != 0 {
			t.Errorf("rank %d gives one more: %#x", rank, context)
		}
	}
}

// What is kept to be used again is bounded, and used again: memory of its size.
func TestSpare_Bounded(t *testing.T) {
	w := new(World)
	w.spare.keepMemory(nil) // is none
	if len(w.spare.kept) != 0 {
		t.Error("nothing is kept as memory")
	}
	for k := range maxSpare + 1 {
		w.spare.keepMemory(make([]byte, 5, 10+k))
		w.putRequest(&Request{comm: w.comm, memory: []byte{1}})
	}
	if memory, requests := len(w.spare.kept), len(w.spare.requests); memory != maxSpare || requests != maxSpare {
		t.Errorf("%d and %d are kept, want %d", memory, requests, maxSpare)
	}
	if b := w.spare.memory(); len(b) != 0 || cap(b) != 10+maxSpare-1 || len(w.spare.kept) != maxSpare-1 {
		t.Errorf("memory of %d bytes, with room for %d; %d are left", len(b), cap(b), len(w.spare.kept))
	}
	if r := w.request(); r.memory != nil || len(w.spare.requests) != maxSpare-1 {
		t.Errorf("a request with %d bytes; %d are left", len(r.memory), len(w.spare.requests))
	}
}

// A blocking send and receive give their requests back.
func TestSpare_UsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		buf := make([]byte, 1)
		for range 10 {
			err := Send(t.Context(), w.Comm(), buf, 1, 0)
			if _, err2 := Recv(t.Context(), other.Comm(), buf, 0, 0); err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
		}
		if sends, receives := len(w.spare.requests), len(other.spare.requests); sends != 1 || receives != 1 {
			t.Errorf("%d and %d requests are kept, want one that is used again", sends, receives)
		}
		closeTwo(t, w, other)
	})
}

// A process is probed once somebody has waited for it, or for any; that is asked for once.
func TestExpected_Once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		for k, c := range []struct {
			rank matching.Rank
			want int
		}{{1, 1}, {1, 0}, {matching.AnySource, 2}, {matching.AnySource, 0}, {0, 0}} {
			w.mu.Lock()
			got := len(w.expected(c.rank))
			w.mu.Unlock()
			if got != c.want {
				t.Errorf("%d: who waits for rank %d has %d probed, want %d", k, c.rank, got, c.want)
			}
		}
		closeTwo(t, w, other)
	})
}

// An operation ends whose Op ends the goroutine that it is called in, as a test's FailNow does. Where the
// other process hears of that before it has come so far, its operation was withdrawn.
func TestIallreduce_OpEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var ended atomic.Int32
		inBoth(t, func(c *Comm) error {
			r := Iallreduce(c, []int{1}, []int{0}, func(_, _ []int) { runtime.Goexit() })
			switch _, err := r.Wait(ctx); {
			case errors.Is(err, errEnded):
				ended.Add(1)
			case !errors.Is(err, ErrWithdrawn):
				t.Errorf("%v", err)
			}
			return nil
		}, w, other)
		if ended.Load() == 0 {
			t.Error("neither has ended by its Op")
		}
		closeTwo(t, w, other)
	})
}
