//go:build linux

// Command route answers: how long does it take a program to change a route of its own node, by
// way of the node's manager and by itself? It prints the time until the call has returned, when
// the next frame would carry the new VID, and until an endpoint has sent that frame; beside the
// round trip of a request and an answer of the same sizes over a bare Unix socket, between two
// processes on cores of their own. The other end of the pair is not asked: its frames change with
// its own node's route.
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

	"github.com/rawlane/rawlane/bench/baseline"
	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

var (
	nodes   = flag.Int("nodes", 16, "nodes of the plan")
	profile = flag.String("profile", "", "write CPU profiles of the ends into this folder")
)

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], endPrefix) {
		harness.Exit("route", runEnd(os.Args[1:]))
	}
	b := harness.Bench{Name: "route", Link: "a Unix socket between two processes, each on a core of its own",
		Rounds: 5, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

// Names of the variants.
const (
	bareC       = "bare Unix socket, C"
	bareGo      = "bare Unix socket, package net"
	changed     = "Session.SetRoute, by way of the manager"
	changedSent = "Session.SetRoute and the next frame"
	inside      = "Table.Set, inside the process"
	sent        = "Table.Set and the next frame, 4,096 nodes"
)

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	if *nodes < 2 || *nodes > 4000 {
		return r, harness.Misuse("want -nodes 2 to 4000")
	}
	if err := os.Setenv(envProfile, *profile); err != nil {
		return r, err
	}
	t := newTable(b.Rounds)
	if b.Rows {
		return harness.RowsOf(variants(b, nil, "there", "", t)), nil
	}
	p, err := netpair.New()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := b.MakeDir(); err != nil {
		return r, err
	}
	inC, err := baseline.Build(b.Dir)
	if err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	err = b.RunRounds(ctx, variants(b, p, inC, self, t))
	return harness.Report{Tables: []*harness.Table{t}, Targets: targets(t)}, err
}

// variants add to t. Without a C compiler inC is "".
func variants(b *harness.Bench, p *netpair.Pair, inC, self string, t *harness.Table) (all []harness.Variant) {
	add := func(name string, args func(role string) []string) {
		all = append(all, harness.Variant{Name: name, Run: func(ctx context.Context) error {
			_, ns, err := p.Run(ctx, args("answer"), args("ask"), 0, 4)
			if err == nil {
				t.AddLatency(name, [4]float64(ns))
			}
			return err
		}})
	}
	if inC != "" {
		add(bareC, func(role string) []string {
			mode, core := "unix-echo", 1
			if role == "ask" {
				mode, core = "unix-ping", 0
			}
			return []string{inC, mode, filepath.Join(b.Dir, "bare"), strconv.Itoa(p.Core(core)),
				strconv.Itoa(len(request)), strconv.Itoa(b.Iters), strconv.Itoa(len(answer))}
		})
	}
	for _, k := range []struct{ name, kind string }{
		{bareGo, "net"}, {changed, "manager"}, {changedSent, "managerframe"}, {inside, "table"}, {sent, "frame"},
	} {
		add(k.name, func(role string) []string {
			return []string{self, endPrefix + k.kind + "-" + role, filepath.Join(b.Dir, k.kind),
				strconv.Itoa(b.Iters), strconv.Itoa(*nodes)}
		})
	}
	return all
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
	t.AddRatio("/ C", "ratio_to_bare_c", bareC)
	t.AddRatio("/ net", "ratio_to_bare_net", bareGo)
	return t
}

func targets(t *harness.Table) []harness.Target {
	change, frame, inGo := t.Find(changed), t.Find(changedSent), t.Find(bareGo)
	return []harness.Target{
		{What: "by way of the manager at most 2.5 x a bare request in Go", Got: change.Over(inGo), Limit: 2.5},
		{What: "by way of the manager at most 7 x a bare request in C", Got: change.Over(t.Find(bareC)), Limit: 7},
		{What: "and the next frame at most 1.2 x the change alone", Got: frame.Over(change), Limit: 1.2},
		{What: "inside the process under 1 us", Got: t.Find(inside).Median(), Limit: 1},
		{What: "until the frame is sent, among 4,096 nodes, under 2 us", Got: t.Find(sent).Median(), Limit: 2},
	}
}
