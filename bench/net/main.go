//go:build linux

// Command net answers: what do programs of package net gain? It prints half of a round trip of a
// connection's 64 bytes beside the push below it and beside TCP, and the calls of rpc, net/http,
// gRPC and net/rpc, the latter three beside themselves over TCP.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
)

func main() {
	b := harness.Bench{Name: "net", Link: "veth; a process at each end, each on a core of its own",
		Rounds: 5, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

// Rows of the first table, by the link that they use.
const (
	push = "push"
	conn = "connection"
)

// connTCP is a connection of package net.
const connTCP = "connection, TCP"

// call is a call of package rpc.
const call = "rpc, ring"

// program is a verb of "rawlane bench" that measures a program over rawlane and over TCP.
type program struct{ name, verb string }

var (
	http     = program{"net/http GET", "http"}
	grpc     = program{"gRPC unary", "grpc"}
	netrpc   = program{"net/rpc", "netrpc"}
	programs = []program{http, grpc, netrpc}
)

// over is the row of a way.
func over(what, link string) string { return what + ", " + link }

const size = 64

// bench is the benchmark and its results: half a round trip on a connection and the push below it;
// and whole calls, with their rate.
type bench struct {
	*harness.Bench
	programs harness.Programs

	conns, calls *harness.Table
	p99, rates   harness.Rows // of calls
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	b := bench{Bench: hb, conns: newConns(hb.Rounds)}
	b.calls = b.newCalls()
	if hb.Rows {
		return harness.RowsOf(b.variants()), nil
	}
	dir, err := os.MkdirTemp("", "rawlane-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if b.programs, err = harness.Build(ctx, dir); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, b.variants()); err != nil {
		return r, err
	}
	return harness.Report{Tables: []*harness.Table{b.conns, b.calls}, Targets: b.targets()}, nil
}

// target is a ratio of two rows.
func target(what string, rows harness.Rows, of, to string, limit float64, atLeast bool) harness.Target {
	return harness.Target{What: what, Got: rows.Find(of).Over(rows.Find(to)), Limit: limit, AtLeast: atLeast}
}

func (b *bench) targets() []harness.Target {
	conns, calls := b.conns.Rows, b.calls.Rows
	httpRing, httpTCP := over(http.name, "ring"), over(http.name, "TCP")
	pushes := harness.Target{What: "a call at most 2 x a push there and one back", Limit: 2,
		Got: calls.Find(call).Over(conns.Find(over(push, "ring"))) / 2}
	return []harness.Target{
		target("a connection at most 1.5 x its push", conns, over(conn, "ring"), over(push, "ring"), 1.5, false),
		target("TCP at least 8 x a connection over ring", conns, connTCP, over(conn, "ring"), 8, true),
		target("TCP at least 4 x a connection over udp", conns, connTCP, over(conn, "udp"), 4, true),
		pushes,
		target("gRPC over TCP at least 2 x over ring", calls, over(grpc.name, "TCP"), over(grpc.name, "ring"), 2, true),
		target("net/rpc over TCP at least 4 x over ring", calls,
			over(netrpc.name, "TCP"), over(netrpc.name, "ring"), 4, true),
		target("HTTP calls a second at least 2 x TCP's", b.rates, httpRing, httpTCP, 2, true),
		target("HTTP's p99 at most TCP's", b.p99, httpRing, httpTCP, 1, false),
	}
}

func newConns(rounds int) *harness.Table {
	t := &harness.Table{
		Title: fmt.Sprintf("Half a round trip of %d bytes, us; median of %d rounds\n%-28s %8s %18s",
			size, rounds, "", "p50", "p50 of the rounds"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-28s %8.2f %8.2f - %7.2f", r.Name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "p50_us": r.Median(), "rounds": len(r.Values)}
		},
		Width: 8,
	}
	t.AddRatio("/ push", "ratio_to_push", over(push, "ring"))
	t.AddRatio("/ TCP", "ratio_to_tcp", connTCP)
	return t
}

func (b *bench) newCalls() *harness.Table {
	return &harness.Table{
		Title: fmt.Sprintf("Calls of %d bytes, one after the other: whole round trips, us; medians of %d rounds\n"+
			"%-28s %8s %8s %10s", size, b.Rounds, "", "p50", "p99", "calls/s"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-28s %8.2f %8.2f %10.0f",
				r.Name, r.Median(), b.p99.Find(r.Name).Median(), b.rates.Find(r.Name).Median())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "p50_us": r.Median(), "p99_us": b.p99.Find(r.Name).Median(),
				"calls_per_s": b.rates.Find(r.Name).Median(), "rounds": len(r.Values)}
		},
	}
}

// line is what the command prints.
type line struct {
	Link string  `json:"link"`
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	Mean float64 `json:"mean_us"`
	Push float64 `json:"push_us"`
	TCP  float64 `json:"tcp_us"`
}

func (b *bench) variants() (all []harness.Variant) {
	for _, link := range []string{"ring", "udp"} {
		rows := []string{over(push, link), over(conn, link)}
		if link == "ring" {
			rows = append(rows, connTCP)
		}
		all = append(all, b.variant("conn", link, rows, func(l line) {
			b.conns.Add(over(push, link), l.Push)
			b.conns.Add(over(conn, link), l.P50)
			if link == "ring" {
				b.conns.Add(connTCP, l.TCP)
			}
		}))
	}
	all = append(all, b.variant("rpc", "ring", []string{call}, func(l line) { b.addCall(call, l) }))
	for _, p := range programs {
		rows := []string{over(p.name, "ring"), over(p.name, "TCP")}
		all = append(all, b.variant(p.verb, "ring", rows, func(l line) {
			if l.Link == "tcp" {
				b.addCall(over(p.name, "TCP"), l)
			} else {
				b.addCall(over(p.name, "ring"), l)
			}
		}))
	}
	return all
}

// addCall adds the results of whole calls.
func (b *bench) addCall(row string, l line) {
	b.calls.Add(row, l.P50)
	b.p99.Add(row, l.P99)
	b.rates.Add(row, 1e6/l.Mean)
}

// variant is a run of a verb of "rawlane bench", whose lines add takes.
func (b *bench) variant(verb, link string, rows []string, add func(line)) harness.Variant {
	return harness.Variant{Name: over(verb, link), Rows: rows, Run: func(ctx context.Context) error {
		lines, err := harness.Lines[line](ctx, &b.programs, verb, "--link", link, "--size", strconv.Itoa(size),
			"--iters", strconv.Itoa(b.Iters))
		for _, l := range lines {
			add(l)
		}
		return err
	}}
}
