//go:build linux

// Command crowd answers: what does it cost to share a machine with programs that compute? It prints
// half of a message's round trip, and calls of net/http, over a ring: by nodes that spin as they do
// if nothing else is said, by nodes that never do, and over TCP; with as many busy processes as the
// machine has cores, and without.
package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/procgroup"
)

func main() {
	b := harness.Bench{Name: "crowd", Link: "veth; a process at each end, each on a core of its own",
		Rounds: 5, Iters: 2000, MinIters: 100, Run: run}
	b.Main()
}

// Rows of a table.
const (
	message      = "message"
	messageSleep = "message, no spinning"
	http         = "net/http GET"
	httpSleep    = "net/http GET, no spinning"
	httpTCP      = "net/http GET, TCP"
)

const size = 64

// place is a machine with others that compute, or without.
type place struct {
	busy  int
	table *harness.Table
	means harness.Rows
}

// bench is the benchmark and its results, with and without busy processes.
type bench struct {
	*harness.Bench

	crowded, empty place
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	b := bench{Bench: hb}
	b.crowded.init(runtime.NumCPU(), hb.Rounds)
	b.empty.init(0, hb.Rounds)
	if hb.Rows {
		return harness.RowsOf(b.variants()), nil
	}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, b.variants()); err != nil {
		return r, err
	}
	return harness.Report{Tables: []*harness.Table{b.crowded.table, b.empty.table}, Targets: b.targets()}, nil
}

func (b *bench) targets() []harness.Target {
	crowded, empty := b.crowded.means, b.empty.means
	return []harness.Target{
		{What: "crowded: a message at most 2 x one that never spins", Limit: 2,
			Got: crowded.Find(message).Over(crowded.Find(messageSleep))},
		{What: "crowded: HTTP at most 2 x HTTP that never spins", Limit: 2,
			Got: crowded.Find(http).Over(crowded.Find(httpSleep))},
		{What: "crowded: HTTP at most as long as over TCP", Limit: 1,
			Got: crowded.Find(http).Over(crowded.Find(httpTCP))},
		{What: "alone: a message that never spins at least 4 x one that does", Limit: 4, AtLeast: true,
			Got: empty.Find(messageSleep).Over(empty.Find(message))},
	}
}

// init makes the place's table. Means are told, too: who loses its core loses milliseconds, which
// no median shows.
func (p *place) init(busy, rounds int) {
	p.busy = busy
	p.table = &harness.Table{
		Title: fmt.Sprintf("%d busy processes: us; medians of %d rounds\n%-28s %8s %8s %8s",
			busy, rounds, "", "p50", "p99", "mean"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-28s %8.1f %8.1f %8.1f", r.Name, r.Median(), r.Second(), p.means.Find(r.Name).Median())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"busy": busy, "name": r.Name, "p50_us": r.Median(), "p99_us": r.Second(),
				"mean_us": p.means.Find(r.Name).Median(), "rounds": r.Rounds()}
		},
	}
}

// line is what the command prints.
type line struct {
	Link string  `json:"link"`
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	Mean float64 `json:"mean_us"`
}

func (p *place) add(row string, l line) {
	p.table.Add(row, l.P50, l.P99)
	p.means.Add(row, l.Mean)
}

func (b *bench) variants() (all []harness.Variant) {
	for _, p := range []*place{&b.crowded, &b.empty} {
		all = append(all,
			b.variant(p, "latency", message, ""),
			b.variant(p, "latency", messageSleep, "", "--spin", "0s"),
			b.variant(p, "http", http, httpTCP),
			b.variant(p, "http", httpSleep, "", "--spin", "0s"))
	}
	return all
}

// compute is a busy process. It ends with ctx, and with this process.
func compute(ctx context.Context) *exec.Cmd {
	busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
	procgroup.Own(busy)
	procgroup.DieWithThread(busy)
	return busy
}

// variant is a run of a verb of "rawlane bench" at a place. What its program needs over TCP is the
// row tcp.
func (b *bench) variant(p *place, verb, row, tcp string, flags ...string) harness.Variant {
	rows := []string{row}
	if tcp != "" {
		rows = append(rows, tcp)
	}
	name := fmt.Sprintf("%s, %d busy", row, p.busy)
	return harness.Variant{Name: name, Rows: rows, Run: func(ctx context.Context) (err error) {
		ctx, end := context.WithCancel(ctx)
		defer end()
		for range p.busy {
			busy := compute(ctx)
			if err := busy.Start(); err != nil {
				return err
			}
			defer func() { end(); _ = busy.Wait() }() // killed
		}
		args := []string{verb, "--link", "ring", "--size", strconv.Itoa(size), "--iters", strconv.Itoa(b.Iters)}
		lines, err := harness.Lines[line](ctx, &b.Programs, append(args, flags...)...)
		for _, l := range lines {
			if l.Link != "tcp" {
				p.add(row, l)
			} else if tcp != "" {
				p.add(tcp, l)
			}
		}
		return err
	}}
}
