package mpi_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// What a process does at some point of a program.
const (
	revokes = iota
	closes
	dies
	freesAlone
	actions
)

// Whatever a process does at some point, no Bcast of the others waits without an end, and what
// succeeds has the right value.
func TestMulticast_EndsModel(t *testing.T) {
	eachSeed(t, "model", *modelSeed, modelPrograms(), func(t *testing.T, seed uint64) {
		program := rand.New(rand.NewPCG(seed, 0))
		n := 3 + program.IntN(3)
		var faults fault.Config
		if program.IntN(3) > 0 {
			faults = fault.Config{Loss: program.Float64() / 10, Reorder: .1, Delay: .1, DelayMax: 3 * time.Millisecond}
		}
		actor, action, at := program.IntN(n), program.IntN(actions), 1+program.IntN(60)
		after := time.Duration(program.IntN(3000)) * time.Microsecond
		synctest.Test(t, func(t *testing.T) {
			var links []*fault.Link
			eps := mcdtest.Open(t, n, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1},
				Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
					f, err := fault.New(l, rand.New(rand.NewPCG(seed, uint64(node))), faults)
					must(t, err)
					links = append(links, f)
					return f
				},
			})
			cfg := byMulticast
			cfg.PeerTimeout = 3 * time.Second
			worlds := openAll(t, eps, cfg)
			inAll(worlds, func(c *mpi.Comm) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				d, err := c.Dup(ctx)
				if err != nil {
					if action != dies || errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("seed %d, action %d of %d: rank %d: %v", seed, action, actor, c.Rank(), err)
					}
					c.Revoke() // others may wait for this rank's part of the Dup
					return
				}
				program := rand.New(rand.NewPCG(seed, 1))
				random := rand.New(rand.NewPCG(seed, 100+uint64(c.Rank())))
				for k := range 120 {
					if random.IntN(10) == 0 {
						time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond)
					}
					if c.Rank() == actor && k == at {
						switch action {
						case revokes:
							time.AfterFunc(after, d.Revoke)
						case closes:
							time.AfterFunc(after, func() { _ = c.World().Close() })
						case dies:
							time.AfterFunc(after, func() { links[actor].Cut(true) })
						case freesAlone:
							ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
							_ = d.Free(ctx)
							cancel()
						}
					}
					root := program.IntN(1 + program.IntN(n))
					got, err := within(t, time.Minute, d, k, root)
					cut := c.Rank() == actor && action == dies
					switch {
					case err == nil && got != k:
						t.Errorf("seed %d, rank %d: has %d, want %d", seed, c.Rank(), got, k)
					case errors.Is(err, mpi.ErrRevoked), errors.Is(err, mpi.ErrFreed), err != nil && cut:
						return
					case err != nil && !errors.Is(err, mpi.ErrClosed) && !errors.Is(err, mpi.ErrProcessFailed):
						t.Errorf("seed %d, action %d of %d, rank %d, root %d, Bcast %d: %v",
							seed, action, actor, c.Rank(), root, k, err)
						return
					}
				}
			})
			closeAll(worlds)
		})
	})
}
