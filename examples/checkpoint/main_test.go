package main

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
)

// runAll runs the program in n processes, some of which die, and returns how each has ended.
func runAll(t *testing.T, n int, dies ...int) (errs []error) {
	synctest.Test(t, func(t *testing.T) {
		errs = make([]error, n)
		var ranks sync.WaitGroup
		for rank, ep := range mcdtest.Open(t, n, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) {
			w, err := mpi.Open(ep, mpi.Config{PeerTimeout: peerTimeout})
			if err != nil {
				t.Fatal(err)
			}
			ranks.Go(func() {
				dead := false
				for _, victim := range dies {
					dead = dead || rank == victim
				}
				p := program{c: w.Comm(), die: ep.Close}
				if errs[rank] = p.run(t.Context(), dead); dead {
					errs[rank] = nil
				}
				err := w.Close()
				if !dead {
					errs[rank] = errors.Join(errs[rank], err)
				}
			})
		}
		ranks.Wait()
	})
	return errs
}

// The survivors have the result of one process: if none dies, if one does, and if two do that are not
// neighbours.
func TestRun(t *testing.T) {
	for _, dies := range [][]int{nil, {0}, {2}, {3}, {0, 2}, {1, 3}} {
		for rank, err := range runAll(t, 5, dies...) {
			if err != nil {
				t.Errorf("%v die: rank %d: %v", dies, rank, err)
			}
		}
	}
}

// A rank and the one that has its copies die: the survivors say what is lost.
func TestRun_Lost(t *testing.T) {
	errs := runAll(t, 5, 1, 2)
	for _, rank := range []int{0, 3, 4} {
		if !errors.Is(errs[rank], errLost) {
			t.Errorf("rank %d: %v, want %v", rank, errs[rank], errLost)
		}
	}
}

// A rank dies before there is a copy: nothing is lost, and the others begin anew.
func TestRun_DeathBeforeTheFirstCopy(t *testing.T) {
	const n = 4
	synctest.Test(t, func(t *testing.T) {
		var ranks sync.WaitGroup
		for rank, ep := range mcdtest.Open(t, n, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) {
			w, err := mpi.Open(ep, mpi.Config{PeerTimeout: peerTimeout})
			if err != nil {
				t.Fatal(err)
			}
			if rank == 1 {
				_ = ep.Close()
				continue
			}
			ranks.Go(func() {
				p := program{c: w.Comm()}
				if err := errors.Join(p.run(t.Context(), false), w.Close()); err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		ranks.Wait()
	})
}

// A copy that a death has interrupted is not taken for the next one of the same number, which has
// blocks on other ranks: what is left of it in a rank's memory is of other steps.
func TestRecover_InterruptedCopy(t *testing.T) {
	const n = 3
	var wrong [n][]int
	synctest.Test(t, func(t *testing.T) {
		var ranks sync.WaitGroup
		var prepared, recovered sync.WaitGroup // no rank goes on while another one is under way
		prepared.Add(n)
		recovered.Add(n)
		for rank, ep := range mcdtest.Open(t, n, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) {
			w, err := mpi.Open(ep, mpi.Config{PeerTimeout: peerTimeout})
			if err != nil {
				t.Fatal(err)
			}
			ranks.Go(func() {
				p := program{c: w.Comm(), memory: make([]uint64, 2*copySize)}
				for k := range p.blocks {
					if k%n == rank {
						p.blocks[k] = firstBlock(k)
					}
				}
				err := p.prepare(t.Context())
				for k := range p.blocks { // copy 2 has come here, of later steps, and not everywhere
					if p.memory[placeOf(1, k)] == 1 {
						p.memory[placeOf(2, k)] = 2
					}
				}
				prepared.Done()
				prepared.Wait()
				err = errors.Join(err, p.recover(t.Context())) // to copy 1, and makes a copy 2
				recovered.Done()
				recovered.Wait()
				err = errors.Join(err, p.recover(t.Context())) // to that
				for k, b := range p.blocks {
					if b != nil && !slices.Equal(b, firstBlock(k)) {
						wrong[rank] = append(wrong[rank], k)
					}
				}
				if err = errors.Join(err, w.Close()); err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		ranks.Wait()
	})
	for rank, blocks := range wrong {
		if blocks != nil {
			t.Errorf("rank %d: blocks %v are those of another copy", rank, blocks)
		}
	}
}
