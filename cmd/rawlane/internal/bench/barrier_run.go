package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// barrierRun is the part of one node.
type barrierRun struct {
	bench *barrierBench
	ep    *mcd.Endpoint
	host  launch.Host
	cmd   *cobra.Command

	x        *cluster.Exchanger // gathers the samples
	barriers *barrier.Service
}

// barrierWarmUp is the least number of barriers that do not count.
const barrierWarmUp = 20

// loops of the benchmark.
var barrierLoops = []string{"work", "tight"}

// all runs every algorithm, and on node 0 collects and prints the results.
func (r *barrierRun) all(ctx context.Context) error {
	loops := len(r.bench.algos) * len(barrierLoops)
	var err error
	if r.x, err = cluster.OpenExchanger(r.ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout}); err != nil {
		return err
	}
	defer func() { _ = r.x.Close() }()
	if r.barriers, err = barrier.Open(r.ep, barrier.Config{}); err != nil {
		return err
	}
	end, err := r.barriers.Group(barrier.GroupConfig{ID: uint32(loops) + 1, PeerTimeout: r.bench.peerTimeout})
	if err != nil {
		return err
	}
	spin := newSpinner(r.bench.work)
	table := barrierTable{Lines: cli.Lines{Out: r.cmd.OutOrStdout(), JSON: r.bench.json}, openMPI: r.bench.openMPI}
	note := cli.NewProgress(r.cmd.ErrOrStderr())
	for i, name := range r.bench.algos {
		if r.ep.Node() == 0 {
			note.Say("%s ...", name)
		}
		if err := r.one(ctx, i, name, spin, &table); err != nil {
			return err
		}
		if r.ep.Node() == 0 {
			note.Clear()
		}
	}
	return errors.Join(end.Barrier(ctx), r.barriers.Close()) // the others answer until node 0 has all
}

// one runs both loops with one algorithm.
func (r *barrierRun) one(ctx context.Context, i int, name string, spin spinner, table *barrierTable) error {
	g, err := r.barriers.Group(barrier.GroupConfig{
		ID: uint32(i), Algorithm: r.bench.cluster.Algorithm(name), PeerTimeout: r.bench.peerTimeout,
	})
	if err != nil {
		return err
	}
	for _, loop := range barrierLoops {
		work := spin
		if loop == "tight" {
			work = 0
		}
		before := g.Stats()
		samples, err := measureBarriers(ctx, g, r.bench.iters, work)
		if err != nil {
			return err
		}
		after := g.Stats()
		parts, err := r.x.Gather(ctx, 0, packSamples(samples))
		if err != nil {
			return err
		}
		if r.ep.Node() != 0 {
			continue
		}
		res := r.result(g, name, loop)
		res.Nacks = after.Nacks - before.Nacks
		if err := r.fill(res, parts); err != nil {
			return err
		}
		if err := table.write(res); err != nil {
			return err
		}
	}
	return g.Close()
}

// warmUpOf returns how many barriers warm up.
func warmUpOf(iters int) int { return max(barrierWarmUp, int(float64(iters)*warmUp)) }

// measureBarriers returns the time of each of a number of barriers, in ns.
func measureBarriers(ctx context.Context, g *barrier.Group, iters int, work spinner) ([]uint32, error) {
	samples := make([]uint32, 0, iters)
	warm := warmUpOf(iters)
	for i := range warm + iters {
		start := time.Now()
		if err := g.Barrier(ctx); err != nil {
			return nil, err
		}
		if took := time.Since(start); i >= warm {
			samples = append(samples, uint32(min(took, math.MaxUint32)))
		}
		work.spin()
	}
	return samples, nil
}

// spinner is a number of rounds of a loop that take a given time on an idle machine.
type spinner int

// spin runs the loop.
func (s spinner) spin() {
	x := uint64(s)
	for range s {
		x = x*6364136223846793005 + 1
	}
	runtime.KeepAlive(x) // or the compiler would leave the loop out
}

// newSpinner finds the number of rounds for a time.
func newSpinner(work time.Duration) spinner {
	const rounds = spinner(20_000)
	best := time.Duration(math.MaxInt64)
	for range 20 {
		start := time.Now()
		rounds.spin()
		best = min(best, max(1, time.Since(start)))
	}
	return spinner(float64(rounds) * float64(work) / float64(best))
}

// fill fills a result with the samples of all nodes.
func (r *barrierRun) fill(res *barrierResult, parts [][]byte) error {
	var all [][]uint32
	for k, b := range parts {
		if len(b) != 4*r.bench.iters {
			return fmt.Errorf("node %d has %d samples, and not %d (give all the same --iters)",
				r.ep.Nodes()[k].ID, len(b)/4, r.bench.iters)
		}
		samples := make([]uint32, r.bench.iters)
		for i := range samples {
			samples[i] = binary.BigEndian.Uint32(b[4*i:])
		}
		all = append(all, samples)
	}
	res.fill(all)
	return nil
}

// packSamples makes the samples bytes.
func packSamples(samples []uint32) []byte {
	b := make([]byte, 0, 4*len(samples))
	for _, s := range samples {
		b = binary.BigEndian.AppendUint32(b, s)
	}
	return b
}
