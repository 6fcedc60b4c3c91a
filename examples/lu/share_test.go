package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
)

// Where each rank has a processor of its own, as in virtual time, about as many bytes are written as
// in the paper: those of sweeps' lines that a rank waits for.
func TestMBCF_3_3_WrittenOfLU(t *testing.T) {
	const paper, tolerance = 13.37, 5
	synctest.Test(t, func(t *testing.T) {
		var ranks sync.WaitGroup
		for _, e := range mcdtest.Open(t, 8, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) {
			w, err := mpi.Open(e, mpi.Config{OfferFrom: 1, EagerLimit: mpi.MaxEagerLimit})
			if err != nil {
				t.Fatal(err)
			}
			ranks.Go(func() {
				c := w.Comm()
				got, err := npb.Measure(t.Context(), c, func() error { return pretend(t.Context(), c, 5) })
				share := 100 * float64(got.Written) / float64(got.Bytes)
				if c.Rank() == 0 && !(math.Abs(share-paper) <= tolerance) {
					t.Errorf("%.2f %% of %d bytes are written; the paper has %v", share, got.Bytes, paper)
				}
				if err := errors.Join(err, c.Barrier(t.Context()), w.Close()); err != nil {
					t.Error(err)
				}
			})
		}
		ranks.Wait()
	})
}

// pretend sends and receives what steps of class W do, and sleeps where these compute.
func pretend(ctx context.Context, c *mpi.Comm, steps int) error {
	s, err := newSolver(c, problem{edge: 33}, true)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
	compute := func(b box) { // in the paper a step takes 0.12 ms a point; one per cent more or less
		time.Sleep(time.Duration((1 + rng.Float64()/100) * float64(b.points()) * float64(30*time.Microsecond)))
	}
	inside := s.grid.inside()
	for range steps {
		for _, direction := range []int{up, down} {
			for z := range order(inside, 2, direction) {
				err = errors.Join(err, s.borders.await(ctx, s.r, z, direction))
				compute(s.borders.plane(z))
				err = errors.Join(err, s.borders.pass(ctx, s.r, z, direction))
			}
		}
		for axis := range axes - 1 {
			err = errors.Join(err, s.borders.faces(ctx, s.u, axis))
			compute(inside)
		}
	}
	return err
}
