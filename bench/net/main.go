//go:build linux

// Command net answers: what do programs of package net gain? It prints half of a round trip of a
// connection's 64 bytes beside the push below it and beside TCP, and the calls of rpc, net/http,
// gRPC and net/rpc, the latter three beside themselves over TCP. And what do 1,000 connections cost
// that carry nothing?
package main

import (
	"context"
	"fmt"
	"slices"
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

const (
	// idleConns is how many connections are idle.
	idleConns = 1000
	// idleShare is how many operations of other variants stand for a second without any.
	idleShare = 5000
)

// idle are the rows of idle connections: ends that spin, as those of the other tables do, and ends
// that sleep at once.
var idle = []struct{ name, link, spin string }{
	{"1,000 idle, ring", "ring", "100us"},
	{"1,000 idle, ring, no spinning", "ring", "0s"},
	{"1,000 idle, udp", "udp", "100us"},
	{"1,000 idle, udp, no spinning", "udp", "0s"},
}

// bench is the benchmark and its results: half a round trip on a connection and the push below it;
// and whole calls, with their rate.
type bench struct {
	*harness.Bench

	conns, calls, idle *harness.Table
	p99, rates         harness.Rows // of calls
	memory, frames     harness.Rows // of idle connections
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	b := bench{Bench: hb, conns: newConns(hb.Rounds)}
	b.calls, b.idle = b.newCalls(), b.newIdle()
	if hb.Rows {
		return harness.RowsOf(b.variants()), nil
	}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, b.variants()); err != nil {
		return r, err
	}
	return harness.Report{Tables: []*harness.Table{b.conns, b.calls, b.idle}, Targets: b.targets()}, nil
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
	targets := []harness.Target{
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
	for _, row := range idle {
		targets = append(targets, harness.Target{What: row.name + ": at most 1 % of a core",
			Got: b.idle.Find(row.name).Median(), Limit: 1})
	}
	return targets
}

func newConns(rounds int) *harness.Table {
	t := &harness.Table{
		Title: fmt.Sprintf("Half a round trip of %d bytes, us; median of %d rounds\n%-28s %8s %18s",
			size, rounds, "", "p50", "p50 of the rounds"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-28s %8.2f %8.2f - %7.2f", r.Name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "p50_us": r.Median(), "rounds": r.Rounds()}
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
				"calls_per_s": b.rates.Find(r.Name).Median(), "rounds": r.Rounds()}
		},
	}
}

func (b *bench) newIdle() *harness.Table {
	return &harness.Table{
		Title: fmt.Sprintf("Idle connections: %% of a core, the busier process; medians of %d rounds of %d s"+
			"\n%-30s %8s %18s %12s %10s",
			b.Rounds, b.idleSeconds(), "", "CPU", "CPU of the rounds", "bytes/conn", "frames/s"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-30s %8.3f %8.3f - %7.3f %12.0f %10.1f", r.Name, r.Median(), r.Min(), r.Max(),
				b.memory.Find(r.Name).Median(), b.frames.Find(r.Name).Median())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "conns": idleConns, "rounds": r.Rounds(),
				"cpu_percent": r.Median(), "bytes_per_conn": b.memory.Find(r.Name).Median(),
				"frames_per_s": b.frames.Find(r.Name).Median()}
		},
	}
}

// idleSeconds is how long idle connections are measured in a round.
func (b *bench) idleSeconds() int { return max(1, b.Iters/idleShare) }

// line is what the command prints.
type line struct {
	Link string  `json:"link"`
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	Mean float64 `json:"mean_us"`
	Push float64 `json:"push_us"`
	TCP  float64 `json:"tcp_us"`

	CPUPercent   [2]float64 `json:"cpu_percent"`
	BytesPerConn [2]float64 `json:"bytes_per_conn"`
	FramesPerS   float64    `json:"frames_per_s"`
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
	for _, row := range idle {
		all = append(all, b.idleVariant(row.name, row.link, row.spin))
	}
	return all
}

// idleVariant has connections between two nodes that carry nothing. Of the two ends the one counts
// that uses more.
func (b *bench) idleVariant(row, link, spin string) harness.Variant {
	return harness.Variant{Name: row, Run: func(ctx context.Context) error {
		lines, err := harness.Lines[line](ctx, &b.Programs, "idle", "--link", link, "--spin", spin,
			"--conns", strconv.Itoa(idleConns), "--iters", strconv.Itoa(b.idleSeconds()))
		for _, l := range lines {
			b.idle.Add(row, slices.Max(l.CPUPercent[:]))
			b.memory.Add(row, slices.Max(l.BytesPerConn[:]))
			b.frames.Add(row, l.FramesPerS)
		}
		return err
	}}
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
		lines, err := harness.Lines[line](ctx, &b.Programs, verb, "--link", link, "--size", strconv.Itoa(size),
			"--iters", strconv.Itoa(b.Iters))
		for _, l := range lines {
			add(l)
		}
		return err
	}}
}
