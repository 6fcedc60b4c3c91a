//go:build linux

// Command route answers: how long does it take a program to change a route, by way of its node's
// manager and by itself? It prints the time from the call until the next frame would carry the new
// VID, beside the round trip of a request and an answer of the same sizes over a bare Unix socket,
// between two processes on cores of their own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/rig"
)

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], twinPrefix) {
		twin(os.Args[1:])
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "route:", err)
		os.Exit(1)
	}
}

// sample is one run's numbers, in ns.
type sample struct{ min, p50, p99, max float64 }

// contestant is a way to change a route, or what one is compared with.
type contestant struct {
	name        string
	answer, ask []string // programs, run on a core each
	samples     []sample
}

// Names of the contestants.
const (
	bareC   = "bare Unix socket, blocking system calls"
	bareGo  = "bare Unix socket, package net"
	changed = "Session.SetRoute, by way of the manager"
	inside  = "Table.Set, inside the process"
)

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("route", flag.ExitOnError)
	iters := flags.Int("iters", 20000, "changes per contestant and round")
	rounds := flags.Int("rounds", 5, "rounds; each contestant's median counts")
	nodes := flags.Int("nodes", 16, "nodes of the plan")
	asJSON := flags.Bool("json", false, "print JSON lines")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *iters < 100 || *rounds < 1 || *nodes < 2 || *nodes > 4000 {
		return errors.New("want -iters 100 or more, -rounds 1 or more, -nodes 2 to 4000")
	}
	r, err := rig.New()
	if err != nil {
		return err
	}
	all, err := contestants(r, *iters, *nodes)
	if err == nil {
		err = compete(ctx, r, all, *rounds)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	return report(out, all, *asJSON)
}

func contestants(r *rig.Rig, iters, nodes int) ([]*contestant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n, k := strconv.Itoa(iters), strconv.Itoa(nodes)
	socket := func(name string) string { return filepath.Join(r.Dir(), name) }
	pair := func(name, kind, socket string) *contestant {
		return &contestant{name: name,
			answer: []string{self, twinPrefix + kind + "-answer", socket, n, k}, ask: []string{self, twinPrefix + kind + "-ask", socket, n, k}}
	}
	return []*contestant{
		pair(bareC, "blocking", socket("blocking")),
		pair(bareGo, "net", socket("net")),
		pair(changed, "manager", socket("manager")),
		pair(inside, "table", socket("table")),
	}, nil
}

// compete runs the rounds. Contestants take turns, so that a slow moment of the machine meets all.
func compete(ctx context.Context, r *rig.Rig, all []*contestant, rounds int) error {
	for range rounds {
		for _, c := range all {
			_, out, err := r.Pair(ctx, c.answer, c.ask)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			var s sample
			if n, err := fmt.Sscan(out, &s.min, &s.p50, &s.p99, &s.max); n != 4 {
				return fmt.Errorf("%s: unexpected output %q: %w", c.name, out, err)
			}
			c.samples = append(c.samples, s)
		}
	}
	return nil
}

// median returns the sample with the median p50.
func (c *contestant) median() sample {
	slices.SortFunc(c.samples, func(a, b sample) int { return int(a.p50 - b.p50) })
	return c.samples[len(c.samples)/2]
}

// result is a contestant's line.
type result struct {
	Name    string  `json:"name"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	LowP50  float64 `json:"lowest_p50_us"`
	HighP50 float64 `json:"highest_p50_us"`
	Ratio   float64 `json:"ratio_to_bare_net"`
	Rounds  int     `json:"rounds"`
}

func report(out io.Writer, all []*contestant, asJSON bool) error {
	p50 := make(map[string]float64)
	for _, c := range all {
		p50[c.name] = c.median().p50
	}
	if !asJSON {
		fmt.Fprintf(out, "From the call until the next frame carries the new VID, us; median of %d rounds\n", len(all[0].samples))
		fmt.Fprintf(out, "%-42s %9s %9s  %-22s %6s\n", "", "p50", "p99", "p50 of the rounds", "/ net")
	}
	lines := json.NewEncoder(out)
	for _, c := range all {
		m := c.median()
		r := result{c.name, m.p50 / 1e3, m.p99 / 1e3, c.samples[0].p50 / 1e3, c.samples[len(c.samples)-1].p50 / 1e3, m.p50 / p50[bareGo], len(c.samples)}
		if asJSON {
			if err := lines.Encode(r); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out, "%-42s %9.3f %9.3f  %9.3f - %9.3f %7.2f\n", r.Name, r.P50, r.P99, r.LowP50, r.HighP50, r.Ratio)
	}
	if !asJSON {
		fmt.Fprintln(out)
		verdict(out, "by way of the manager at most 3 x the bare request", p50[changed]/min(p50[bareC], p50[bareGo]), 3)
		verdict(out, "inside the process under 1 us", p50[inside]/1e3, 1)
	}
	return nil
}

func verdict(out io.Writer, what string, value, limit float64) {
	word := "met"
	if value > limit {
		word = "NOT met"
	}
	fmt.Fprintf(out, "%-52s %-8s (%.2f, limit %g)\n", what, word, value, limit)
}
