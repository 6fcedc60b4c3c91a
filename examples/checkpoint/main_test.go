package main

import (
	"errors"
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
