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
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

var nodes = flag.Int("nodes", 16, "nodes of the plan")

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], endPrefix) {
		harness.Exit("route", runEnd(os.Args[1:]))
	}
	b := harness.Bench{Name: "route", Rounds: 5, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

// Names of the variants.
const (
	bareC   = "bare Unix socket, blocking system calls"
	bareGo  = "bare Unix socket, package net"
	changed = "Session.SetRoute, by way of the manager"
	inside  = "Table.Set, inside the process"
	sent    = "Table.Set and the next frame, 4,096 nodes"
)

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	if *nodes < 2 || *nodes > 4000 {
		return r, errors.New("want -nodes 2 to 4000")
	}
	p, err := netpair.New()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	t := newTable(b.Rounds)
	var all []harness.Variant
	for _, k := range []struct{ name, kind string }{
		{bareC, "blocking"}, {bareGo, "net"}, {changed, "manager"}, {inside, "table"}, {sent, "frame"},
	} {
		args := func(role string) []string {
			return []string{self, endPrefix + k.kind + role, filepath.Join(p.Dir(), k.kind),
				strconv.Itoa(b.Iters), strconv.Itoa(*nodes)}
		}
		all = append(all, harness.Variant{Name: k.name, Run: func(ctx context.Context) error {
			_, ns, err := p.Run(ctx, args("-answer"), args("-ask"), 0, 4)
			if err == nil {
				t.AddLatency(k.name, [4]float64(ns))
			}
			return err
		}})
	}
	err = b.RunRounds(ctx, all)
	return harness.Report{Tables: []*harness.Table{t}, Targets: targets(t)}, err
}

func newTable(rounds int) *harness.Table {
	t := &harness.Table{
		Title: fmt.Sprintf("From the call until the next frame carries the new VID, us; median of %d rounds\n"+
			"%-42s %9s %9s  %-21s", rounds, "", "p50", "p99", "p50 of the rounds"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-42s %9.3f %9.3f  %9.3f - %9.3f", r.Name, r.Median(), r.Second(), r.Min(), r.Max())
		},
		JSON:  harness.LatencyJSON,
		Width: 7,
	}
	t.AddRatio("/ net", "ratio_to_bare_net", bareGo)
	return t
}

func targets(t *harness.Table) []harness.Target {
	bare := min(t.Find(bareC).Median(), t.Find(bareGo).Median())
	return []harness.Target{
		{What: "by way of the manager at most 3 x the bare request", Got: t.Find(changed).Median() / bare, Limit: 3},
		{What: "inside the process under 1 us", Got: t.Find(inside).Median(), Limit: 1},
		{What: "until the frame is sent, among 4,096 nodes, under 2 us", Got: t.Find(sent).Median(), Limit: 2},
	}
}
