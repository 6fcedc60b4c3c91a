package mpi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
)

// A window that one process could not make is freed for those that could, or enter its barrier when
// that process has left.
func TestNewWin_MadeByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		var ranks sync.WaitGroup
		ranks.Go(func() {
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := NewWin(short, w.Comm(), make([]int64, 1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("made late: %v", err)
			}
		})
		ranks.Go(func() {
			ctx := t.Context()
			v := &window{w: other, element: 8, memory: make([]byte, 8), calls: map[uint32]*call{}}
			v.kind, v.updater = updaterOf[int64]()
			var err error
			if v.comm, err = other.Comm().Dup(ctx); err != nil {
				t.Error(err)
			}
			key, err := v.lend()
			err = errors.Join(err, v.exchange(ctx, key))
			time.Sleep(2 * time.Second) // as a process that is not scheduled
			if err != nil {
				t.Errorf("not made: %v", err)
			}
			if err = v.comm.Barrier(ctx); !errors.Is(err, ErrFreed) {
				t.Errorf("barrier: %v", err)
			}
			short, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err = v.Lock(short, 1-v.comm.Rank(), Shared); !errors.Is(err, ErrFreed) {
				t.Errorf("lock: %v", err)
			}
		})
		ranks.Wait()
		closeTwo(t, w, other)
	})
}

// What is fetched from a process whose frames are shorter comes in several.
func TestWin_FramesOfTwoLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		other.frame -= 200
		var ranks sync.WaitGroup
		for _, w := range []*World{w, other} {
			ranks.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				v, err := NewWin(ctx, w.Comm(), make([]int64, 3000))
				if err != nil {
					t.Error(err)
				}
				if w == other {
					time.Sleep(2 * time.Minute)
					if n := w.Counters().Malformed; n != 0 {
						t.Errorf("%d malformed", n)
					}
					return
				}
				_ = v.LockAll(ctx)
				if err := v.GetAccumulate(ctx, make([]int64, 3000), make([]int64, 3000), 1-w.Comm().Rank(), 0, Add); err != nil {
					t.Error(err)
				}
			})
		}
		ranks.Wait()
		closeTwo(t, w, other)
	})
}

// A compare and swap of what is not there, or that has not two elements, changes nothing.
func TestCompareSwap_WhatMakesNoSense(t *testing.T) {
	v := &window{element: 8, memory: bytesOf([]int64{7, 7})}
	_, v.updater = updaterOf[int64]()
	for _, c := range []struct {
		name string
		at   uint64
		data []int64
	}{
		{"behind the end", 2, []int64{7, 1}},
		{"one element", 0, []int64{1}},
		{"three elements", 0, []int64{7, 1, 1}},
		{"nothing", 0, nil},
	} {
		if old := v.compareSwap(c.at, bytesOf(c.data)); old != nil {
			t.Errorf("%s: it was %x", c.name, old)
		}
	}
	if got := elementsOf[int64](v.memory); got[0] != 7 || got[1] != 7 {
		t.Errorf("changed to %d", got)
	}
	if old := v.compareSwap(1, bytesOf([]int64{7, 1})); elementsOf[int64](old)[0] != 7 || elementsOf[int64](v.memory)[1] != 1 {
		t.Errorf("it was %x, and is %x", old, v.memory)
	}
}

// A refusal of a window's memory names the rank, as the record that says so may come later; one of
// other memory there is none of the window's.
func TestNoteRefused_NamesWho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		inBoth(t, func(c *Comm) error {
			v, err := NewWin(t.Context(), c, make([]int64, 1))
			if err != nil {
				return err
			}
			told := func(refused *memfifo.AccessError) error {
				if refused != nil {
					c.w.noteRefused(refused)
				}
				c.w.mu.Lock()
				defer c.w.mu.Unlock()
				return v.gone(v.members)
			}
			for rank, m := range v.members {
				key := m.memory.Key()
				refused := &memfifo.AccessError{Node: key.Node, ID: key.ID}
				err := told(refused)
				if !errors.Is(err, ErrFreed) || !strings.HasPrefix(err.Error(), fmt.Sprintf("rank %d: ", rank)) {
					t.Errorf("rank %d refuses: %v", rank, err)
				}
				if err := told(nil); !errors.Is(err, ErrFreed) { // another goroutine's flush
					t.Errorf("rank %d has refused: %v", rank, err)
				}
				c.w.mu.Lock()
				m.refused = false // it has not
				c.w.mu.Unlock()
				refused.ID++
				if err := told(refused); err != nil {
					t.Errorf("rank %d refuses other memory: %v", rank, err)
				}
			}
			return v.Free(t.Context())
		}, w, other)
		closeTwo(t, w, other)
	})
}

// Two windows that a process frees alone, while it has no room to say so: the flush of each tells
// that what was put there was refused, though the first one has heard of both.
func TestWin_TwoFreedAlone(t *testing.T) {
	freedUntold(t, 2, func(ctx context.Context, _ *Comm, all []*Win[int64]) error {
		err := all[0].Put(ctx, []int64{1}, 1, 0)
		err2 := all[1].Put(ctx, []int64{1}, 1, 0)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		for k, v := range []*Win[int64]{all[1], all[0]} {
			if err := v.Flush(ctx, 1); !errors.Is(err, ErrFreed) {
				t.Errorf("flush %d: %v, want ErrFreed", k, err)
			}
		}
		return nil
	})
}
