package mpi_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
)

// sum is Allreduce of a rank's number, with a deadline.
func sum(t *testing.T, d time.Duration, c *mpi.Comm) (int, error) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	result := []int{-1}
	err := mpi.Allreduce(ctx, c, []int{c.Rank()}, result, mpi.Sum)
	return result[0], err
}

// What comes before a multicast has failed at one process alone: the multicasts behind it are
// those that they were.
func TestMulticast_FirstFailsAtOne(t *testing.T) {
	for name, cfg := range map[string]mpi.Config{"by rank 0": allByMulticast, "by each": byEach} {
		t.Run(name, func(t *testing.T) { testFirstFails(t, cfg, name == "by each") })
	}
}

func testFirstFails(t *testing.T, cfg mpi.Config, each bool) {
	for alone := range 3 {
		synctest.Test(t, func(t *testing.T) {
			worlds, _ := openLossy(t, 3, cfg, func() bool { return false })
			inAll(worlds, func(c *mpi.Comm) {
				checkWithin(t, c, 1, 0)
				result := make([]int, 1)
				if c.Rank() == alone {
					result = nil // too short
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := mpi.Allreduce(ctx, c, []int{c.Rank()}, result, mpi.Sum)
				if c.Rank() == alone && (err == nil || ctx.Err() != nil) {
					t.Errorf("rank %d, whose result is too short: %v", c.Rank(), err)
				}
				if (alone == 0 || each) && c.Rank() != alone && !errors.Is(err, mpi.ErrWithdrawn) {
					t.Errorf("rank %d, while rank %d has failed: %v", c.Rank(), alone, err)
				}
				for k := range 40 {
					checkWithin(t, c, k, 0)
					if got, err := sum(t, 10*time.Second, c); err != nil || got != 3 {
						t.Errorf("rank %d: %d, %v", c.Rank(), got, err)
					}
				}
			})
			closeAll(worlds)
		})
	}
}

// inACrowd has operations go by multicast in a crowd alone.
var inACrowd = mpi.Config{Algorithms: []mpi.Algorithm{
	{Operation: "allreduce", Name: "recursive doubling"},
	{Operation: "allreduce", Processes: 4, Crowded: true, Name: "multicast"},
	{Operation: "allgather", Name: "dissemination"},
	{Operation: "allgather", Processes: 4, Crowded: true, Name: "multicast"},
}}

// A row for a crowd counts in a crowd, and nowhere else: not where each process has a core, nor
// where it is not known where they run.
func TestAlgorithms_InACrowd(t *testing.T) {
	const four = 0b1111 // cores
	place := func(host, cores uint64, usable uint16) mcd.Place {
		return mcd.Place{Host: host, Cores: cores, Usable: usable}
	}
	for name, b := range map[string]struct {
		places  [4]mcd.Place
		crowded bool
	}{
		"a core each": {places: [4]mcd.Place{place(1, four, 1), place(1, four, 1), place(1, four, 1), place(1, four, 1)}},
		"two cores": {crowded: true,
			places: [4]mcd.Place{place(1, 3, 1), place(1, 3, 1), place(1, 3, 1), place(1, 3, 1)}},
		"one of two hosts is crowded": {crowded: true,
			places: [4]mcd.Place{place(1, four, 4), place(1, four, 4), place(2, 1, 1), place(2, 1, 1)}},
		"two hosts":      {places: [4]mcd.Place{place(1, 3, 1), place(2, 3, 1), place(1, 3, 1), place(2, 3, 1)}},
		"one is unknown": {places: [4]mcd.Place{place(1, 1, 1), place(1, 1, 1), place(1, 1, 1), {}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				eps := mcdtest.Open(t, 4, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
				for _, ep := range eps {
					nodes := slices.Clone(ep.Nodes())
					for k := range nodes {
						nodes[k].Place = b.places[k]
					}
					must(t, ep.SetNodes(nodes))
				}
				worlds := openAll(t, eps, inACrowd)
				inAll(worlds, func(c *mpi.Comm) {
					pair, err := c.Split(t.Context(), c.Rank()/2, 0)
					must(t, err)
					of := c.World().Counters
					for _, call := range []func(*mpi.Comm) error{
						func(c *mpi.Comm) error { _, err := sum(t, time.Minute, c); return err },
						func(c *mpi.Comm) error { return mpi.Allgather(t.Context(), c, []int{1}, make([]int, c.Size())) },
					} {
						sent := of().Sent
						must(t, call(c))
						want := uint64(2)
						if b.crowded {
							want = uint64(min(c.Rank(), 1))
						}
						if got := of().Sent - sent; got != want {
							t.Errorf("%d messages of rank %d, want %d", got, c.Rank(), want)
						}
						sent = of().Sent
						must(t, call(pair))
						if got := of().Sent - sent; got != 1 {
							t.Errorf("%d messages of rank %d to one other, want 1", got, c.Rank())
						}
					}
				})
				closeAll(worlds)
			})
		})
	}
}

// A process whose result of an Allgather has another length than the parts together is told so, by
// whichever algorithm; the others have its part.
func TestAllgather_LengthAtOne(t *testing.T) {
	for alone := 1; alone < 3; alone++ {
		for _, length := range []int{2, 4} {
			synctest.Test(t, func(t *testing.T) {
				worlds, _ := openLossy(t, 3, allByMulticast, func() bool { return false })
				inAll(worlds, func(c *mpi.Comm) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if c.Rank() == alone {
						err := mpi.Allgather(ctx, c, []int{c.Rank()}, make([]int, length))
						if err == nil || !strings.Contains(err.Error(), "want 3") {
							t.Errorf("rank %d, with %d elements for 3: %v", alone, length, err)
						}
						return
					}
					all := make([]int, 3)
					if err := mpi.Allgather(ctx, c, []int{c.Rank()}, all); err != nil || !slices.Equal(all, []int{0, 1, 2}) {
						t.Errorf("rank %d: %v, %v", c.Rank(), all, err)
					}
				})
				closeAll(worlds)
			})
		}
	}
}
