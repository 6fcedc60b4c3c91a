//go:build linux

// Command route answers: how long does it take a program to change a route, by way of its node's
// manager and by itself? It prints the time from the call until the next frame would carry the new
// VID, beside the round trip of a request and an answer of the same sizes over a bare Unix socket,
// between two processes on cores of their own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], endPrefix) {
		runEnd(os.Args[1:])
		return
	}
	nodes := 16
	b := harness.Bench{
		Name: "route", Rounds: 5, Iters: 20000, MinIters: 100,
		Flags: func(f *flag.FlagSet) { f.IntVar(&nodes, "nodes", nodes, "nodes of the plan") },
		Run: func(ctx context.Context, o harness.Options) (harness.Report, error) {
			return run(ctx, o, nodes)
		},
	}
	b.Main()
}

type variant = harness.Variant[harness.Latency]

// Names of the variants.
const (
	bareC   = "bare Unix socket, blocking system calls"
	bareGo  = "bare Unix socket, package net"
	changed = "Session.SetRoute, by way of the manager"
	inside  = "Table.Set, inside the process"
	sent    = "Table.Set and the next frame, 4,096 nodes"
)

func run(ctx context.Context, o harness.Options, nodes int) (harness.Report, error) {
	if nodes < 2 || nodes > 4000 {
		return nil, errors.New("want -nodes 2 to 4000")
	}
	p, err := netpair.New()
	if err != nil {
		return nil, err
	}
	all, err := variants(p, o.Iters, nodes)
	if err == nil {
		err = harness.Rounds(ctx, all, o.Rounds)
	}
	return newReport(all), errors.Join(err, p.Close())
}

func variants(p *netpair.Pair, iters, nodes int) ([]*variant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program := func(name, kind string) *variant {
		numbers := []string{filepath.Join(p.Dir(), kind), strconv.Itoa(iters), strconv.Itoa(nodes)}
		answer := append([]string{self, endPrefix + kind + "-answer"}, numbers...)
		ask := append([]string{self, endPrefix + kind + "-ask"}, numbers...)
		return &variant{Name: name, Run: func(ctx context.Context) (harness.Latency, error) {
			_, out, err := p.Run(ctx, answer, ask)
			return harness.ParseLatency(out, err)
		}}
	}
	return []*variant{
		program(bareC, "blocking"), program(bareGo, "net"), program(changed, "manager"), program(inside, "table"),
		program(sent, "frame"),
	}, nil
}

// line is the result of a variant.
type line struct {
	Name    string  `json:"name"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	LowP50  float64 `json:"lowest_p50_us"`
	HighP50 float64 `json:"highest_p50_us"`
	Ratio   float64 `json:"ratio_to_bare_net"`
	Rounds  int     `json:"rounds"`
}

type report []line

func newReport(all []*variant) (r report) {
	for _, v := range all {
		if len(v.Samples) == 0 {
			return nil
		}
		m, low, high := harness.MedianLatency(v)
		r = append(r, line{v.Name, m.P50 / 1e3, m.P99 / 1e3, low / 1e3, high / 1e3, 0, len(v.Samples)})
	}
	for i := range r {
		r[i].Ratio = r[i].P50 / r.p50(bareGo)
	}
	return r
}

func (r report) p50(name string) float64 {
	for _, l := range r {
		if l.Name == name {
			return l.P50
		}
	}
	return 0
}

// JSON implements harness.Report.
func (r report) JSON() (lines []any) {
	for _, l := range r {
		lines = append(lines, l)
	}
	return lines
}

// Text implements harness.Report.
func (r report) Text(out io.Writer) {
	fmt.Fprintf(out, "From the call until the next frame carries the new VID, us; median of %d rounds\n", r[0].Rounds)
	fmt.Fprintf(out, "%-42s %9s %9s  %-22s %6s\n", "", "p50", "p99", "p50 of the rounds", "/ net")
	for _, l := range r {
		fmt.Fprintf(out, "%-42s %9.3f %9.3f  %9.3f - %9.3f %7.2f\n", l.Name, l.P50, l.P99, l.LowP50, l.HighP50, l.Ratio)
	}
	fmt.Fprintln(out)
	harness.PrintTargets(out,
		harness.Target{What: "by way of the manager at most 3 x the bare request",
			Got: r.p50(changed) / min(r.p50(bareC), r.p50(bareGo)), Limit: 3},
		harness.Target{What: "inside the process under 1 us", Got: r.p50(inside), Limit: 1},
		harness.Target{What: "until the frame is sent, among 4,096 nodes, under 2 us", Got: r.p50(sent), Limit: 2},
	)
}
