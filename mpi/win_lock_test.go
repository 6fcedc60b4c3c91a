package mpi

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// In all sequences of locks and releases: an exclusive lock is held alone, nobody is overtaken, and
// nobody waits without a reason.
func TestLockQueue(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		var q lockQueue
		var order []int // that came, and are not released
		held, exclusive := map[int]bool{}, map[int]bool{}
		for step := range 100 {
			rank := random.IntN(6)
			if slices.Contains(order, rank) {
				if q.add(rank, 1, false) {
					t.Fatalf("seed %d: rank %d has two locks", seed, rank)
				}
				q.remove(rank, 99) // that it has not
				q.remove(rank, []uint32{0, 1}[step%2])
				order = slices.DeleteFunc(order, func(other int) bool { return other == rank })
				delete(held, rank)
			} else {
				exclusive[rank] = random.IntN(2) == 0
				if !q.add(rank, 1, exclusive[rank]) {
					t.Fatalf("seed %d: rank %d is refused", seed, rank)
				}
				order = append(order, rank)
			}
			q.grant(func(rank int, _ uint32) {
				if held[rank] {
					t.Fatalf("seed %d: granted twice", seed)
				}
				held[rank] = true
			})
			for k, rank := range order {
				before := slices.ContainsFunc(order[:k], func(other int) bool { return exclusive[other] })
				if want := !before && (!exclusive[rank] || k == 0); held[rank] != want {
					t.Fatalf("seed %d, step %d: rank %d of %v: held %v (exclusive: %v)", seed, step, rank, order, held, exclusive)
				}
			}
		}
	}
}

// A window that is freed leaves nothing behind: the next one has its memory's id.
func TestWin_FreeLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		var ranks sync.WaitGroup
		for _, w := range []*World{w, other} {
			ranks.Go(func() {
				for range 20 {
					v, err := NewWin(t.Context(), w.Comm(), make([]int, 5))
					if err == nil {
						err = errors.Join(v.Fence(t.Context()), v.Free(t.Context()))
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.windows) != 0 || w.spare.made != 1 || len(w.spare.windows) != 1 {
					t.Errorf("%d windows are left, %d of %d ids are free", len(w.windows), len(w.spare.windows), w.spare.made)
				}
			})
		}
		ranks.Wait()
		closeTwo(t, w, other)
	})
}

// What a window has queued when its world is closed is sent: others wait for it.
func TestClose_SendsWhatWindowsHaveQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds, links := openFaulty(t)
		inBoth(t, func(c *Comm) error {
			ctx := t.Context()
			v, err := NewWin(ctx, c, make([]int, 1))
			if err != nil {
				return err
			}
			if c.Rank() == 1 {
				return errors.Join(v.Post(0), v.Wait(ctx))
			}
			if err := v.Start(ctx, 1); err != nil {
				return err
			}
			m := v.members[1]
			links[0].Cut(true)
			synctest.Wait()                             // no acknowledgement makes room from now on
			for m.to.PostPush(make([]byte, 8)) == nil { // without sense, and until there is none
			}
			err = v.Complete()
			links[0].Cut(false)
			c.w.mu.Lock()
			queued := len(m.queue)
			c.w.mu.Unlock()
			if queued == 0 {
				t.Error("there was room for it")
			}
			return errors.Join(err, c.w.Close())
		}, worlds[0], worlds[1])
		closeTwo(t, worlds[0], worlds[1])
	})
}
