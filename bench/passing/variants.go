//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
	"github.com/rawlane/rawlane/bench/peers"
	"github.com/rawlane/rawlane/memfifo"
)

// variants are all programs, each of which takes a turn in every round.
func (p *passing) variants() (all []harness.Variant) {
	pairs := []string{ours, push, put, goes}
	all = append(all, harness.Variant{Name: "pairs of rawlane", Rows: pairs, Run: p.ours})
	for _, m := range p.mpis {
		all = append(all, harness.Variant{
			Name: m.Name, MayFail: true, Run: func(ctx context.Context) error { return p.pairsOf(ctx, m) },
		})
	}
	for _, n := range p.nodes {
		all = append(all, harness.Variant{
			Name: fmt.Sprintf("rawlane, %d ranks", n), Rows: []string{ours},
			Run: func(ctx context.Context) error { return p.oursTogether(ctx, n) },
		})
		for _, m := range p.mpis {
			all = append(all, harness.Variant{
				Name: fmt.Sprintf("%s, %d ranks", m.Name, n), Rows: []string{m.Name}, MayFail: true,
				Run: func(ctx context.Context) error { return p.others(ctx, m, n) },
			})
		}
	}
	return all
}

// line is what rawlane's command prints.
type line struct {
	Link string  `json:"link"`
	Size int     `json:"size_bytes"`
	P50  float64 `json:"p50_us"`
	Mean float64 `json:"mean_us"`
	MB   float64 `json:"mb_per_s"`
}

// tries are the results of a round for long messages one way, and for what two ranks do together:
// of one and the same program they differ by more than all that is compared.
const tries = 3

// moreShort is how many times more messages there are of at most shortMax bytes: they take
// microseconds, and in a few milliseconds of them the host may have slowed all or none.
const (
	moreShort = 10
	shortMax  = 1024
)

// fewerLong is how many times fewer messages of this length rawlane's benchmarks of MPI send than
// --iters says.
const fewerLong = 10

// byLength has round trips measured: those of short messages, of which there are more, and others.
func (p *passing) byLength(sizes []int, measure func(iters int, sizes []int) error) error {
	shorts := slices.IndexFunc(sizes, func(size int) bool { return size > shortMax })
	if err := measure(moreShort*p.Iters, sizes[:shorts]); err != nil {
		return err
	}
	return measure(p.Iters, sizes[shorts:])
}

// ours are package mpi, what it is built on, and Go's TCP.
func (p *passing) ours(ctx context.Context) error {
	trips := func(name string) func(line) { return func(l line) { p.trips[l.Size].Add(name, l.P50) } }
	windows := []string{"--iters", strconv.Itoa(fewerLong * *bytes / long)}
	length := []string{"--bytes", strconv.Itoa(*bytes)}
	iters := []string{"--iters", strconv.Itoa(p.Iters)}
	measure := func(add func(line), flags []string, what ...string) func(int, []int) error {
		return func(iters int, sizes []int) error {
			return p.bench(ctx, what, sizes, append(flags, "--iters", strconv.Itoa(iters)), add)
		}
	}
	if err := p.byLength(sizes, measure(trips(ours), nil, "mpi", "latency")); err != nil {
		return err
	}
	written := func(l line) { p.puts[l.Size].Add(ours, l.P50) }
	if err := p.byLength(putSizes, measure(written, nil, "mpi", "put")); err != nil {
		return err
	}
	records := slices.DeleteFunc(slices.Clone(sizes), func(size int) bool { return size > memfifo.MaxRecord })
	if err := p.byLength(records, measure(trips(push), length, "fifo")); err != nil {
		return err
	}
	err := p.bench(ctx, []string{"latency"}, []int{short}, append(iters, "--beside", "tcp"), func(l line) {
		if l.Link == "tcp" {
			p.trips[short].Add(goes, l.P50)
		}
	})
	if err != nil {
		return err
	}
	for range tries {
		to := func(row string) func(line) { return func(l line) { p.oneWay.Add(row, l.MB) } }
		if err := p.bench(ctx, []string{"mpi", "bandwidth"}, []int{long}, windows, to(ours)); err != nil {
			return err
		}
		if err := p.bench(ctx, []string{"put"}, []int{long}, append(iters, length...), to(put)); err != nil {
			return err
		}
	}
	return p.bench(ctx, []string{"mpi", "bibw"}, []int{long}, windows, func(l line) { p.bothWays.Add(ours, l.MB) })
}

// bench runs a benchmark of the command over the pair's interfaces.
func (p *passing) bench(ctx context.Context, what []string, sizes []int, flags []string, add func(line)) error {
	args := append(append([]string{}, what...), "--link=ring", "--size", harness.List(sizes))
	lines, err := netpair.Lines[line](ctx, p.pair, p.Programs.Rawlane, append(args, flags...)...)
	for _, l := range lines {
		add(l)
	}
	return err
}

// pairsOf are the messages of another MPI.
func (p *passing) pairsOf(ctx context.Context, m *peers.MPI) error {
	measure := func(what string, tables map[int]*harness.Table) func(int, []int) error {
		return func(iters int, sizes []int) error {
			took, err := m.Run(ctx, p.hosts, peers.TCP, what, append([]int{iters}, sizes...)...)
			for size, us := range took {
				tables[size].Add(m.Name, us)
			}
			return err
		}
	}
	if err := p.byLength(sizes, measure("latency", p.trips)); err != nil {
		return err
	}
	if err := p.byLength(putSizes, measure("put", p.puts)); err != nil {
		return err
	}
	for range tries {
		if err := p.streamOf(ctx, m, "stream", p.oneWay); err != nil {
			return err
		}
	}
	return p.streamOf(ctx, m, "both", p.bothWays)
}

// streamOf are another MPI's long messages.
func (p *passing) streamOf(ctx context.Context, m *peers.MPI, what string, to *harness.Table) error {
	rate, err := m.Run(ctx, p.hosts, peers.TCP, what, *bytes, long)
	if err != nil {
		return err
	}
	to.Add(m.Name, rate[long])
	return nil
}

// iterations are fewer where ranks share cores: each call may take many slices of them.
func (p *passing) iterations(ranks int, cores []int) int {
	if cores == nil {
		return max(p.Iters/100, 1)
	}
	return max(moreShort*p.Iters/ranks, 1)
}

// measured are the collective operations that have a turn, in a round, among so many ranks.
func measured(n int) []collective {
	if n > 2 {
		return collectives
	}
	return slices.Repeat(collectives, tries)
}

// oursTogether are the collective operations of package mpi.
func (p *passing) oursTogether(ctx context.Context, n int) error {
	cores := harness.Cores(n)
	for _, c := range measured(n) {
		args := []string{"mpi", c.name, "--link=ring", "--nodes", strconv.Itoa(n),
			"--iters", strconv.Itoa(p.iterations(n, cores))}
		if c.size > 0 {
			args = append(args, "--size", strconv.Itoa(c.size))
		}
		lines, err := harness.Lines[line](ctx, &p.Programs, args...)
		if err != nil {
			return err
		}
		p.together[key(c.name, n)].Add(ours, lines[0].Mean)
	}
	return nil
}

// others are the collective operations of another MPI.
func (p *passing) others(ctx context.Context, m *peers.MPI, n int) error {
	return m.Among(ctx, n, p.Dir, func(h *peers.Hosts, cores []int) error {
		for _, c := range measured(n) {
			numbers, of := []int{p.iterations(n, cores)}, n
			if c.size > 0 {
				numbers, of = append(numbers, c.size), c.size
			}
			us, err := m.Run(ctx, h, peers.TCP, c.name, numbers...)
			if err != nil {
				return err
			}
			p.together[key(c.name, n)].Add(m.Name, us[of])
		}
		return nil
	})
}
