package mpi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/transport/fault"
)

// Of an operation that has failed here no messages are kept, whether they come before or after that,
// with their bytes or without; those that are under way have theirs.
func TestCollective_FailedKeepsNothing(t *testing.T) {
	for name, count := range map[string]int{"eager": 1, "requested": 20_000} {
		t.Run(name, func(t *testing.T) { testFailedKeepsNothing(t, count) })
	}
}

func testFailedKeepsNothing(t *testing.T, count int) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		data := make([]int, count)
		fails := func() { // and tells nobody: else what is long is not sent any more
			err := d[0].do(ctx, "gather", func(collective) error { return givenError{ErrTruncate} })
			if !errors.Is(err, ErrTruncate) {
				t.Errorf("%v", err)
			}
		}
		kept := func() bool {
			worlds[0].mu.Lock()
			defer worlds[0].mu.Unlock()
			tag := int32(d[1].operations.Load())
			return worlds[0].engine.Probe(&matching.Pattern{Source: 1, Context: d[0].context + 1, Tag: tag}) != nil
		}
		sends := func() (over func()) {
			r := Igather(d[1], data, nil, 0)
			return func() {
				if _, err := r.Wait(ctx); err != nil {
					t.Errorf("%v", err)
				}
			}
		}
		over := sends()
		if synctest.Wait(); !kept() {
			t.Error("what has come before its operation is not kept")
		}
		fails()
		if kept() {
			t.Error("what had come before the operation failed is kept")
		}
		over()

		before := worlds[0].Counters().Kept
		fails()
		over = sends()
		if synctest.Wait(); kept() || worlds[0].Counters().Kept != before+1 {
			t.Error("what has come since the operation failed is kept")
		}
		over()

		over = sends()
		if synctest.Wait(); !kept() {
			t.Error("what has come before the next operation is not kept")
		}
		all := make([]int, 2*count)
		if err := Gather(ctx, d[0], data, all, 0); err != nil {
			t.Errorf("the next one: %v", err)
		}
		over()
		if n := len(d[0].underWay); n != 0 {
			t.Errorf("%d are under way", n)
		}
	})
}

// Of an operation that others have called with another root nothing is kept, either.
func TestCollective_RootsDifferKeepsNothing(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		for rank := range d {
			other := Ibcast(d[1-rank], []int{1}, 1-rank)
			synctest.Wait() // its message has come
			if _, err := Ibcast(d[rank], []int{2}, rank).Wait(t.Context()); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
			if _, err := other.Wait(t.Context()); err != nil {
				t.Errorf("rank %d: %v", 1-rank, err)
			}
			synctest.Wait()
			for k, w := range worlds {
				w.mu.Lock()
				tag := int32(d[k].operations.Load())
				if w.engine.Probe(&matching.Pattern{Source: matching.AnySource, Context: d[k].context + 1, Tag: tag}) != nil {
					t.Errorf("rank %d keeps a message", k)
				}
				w.mu.Unlock()
			}
		}
	})
}
