//go:build linux

// Command latency answers: how close is a rawlane message to what the kernel allows, and to UDP and
// TCP? It prints half of a round trip between two processes in network namespaces of their own, for
// a bare ring in C, sockets in C, Go's sockets, and rawlane's links. Like stands beside like: what
// spins with what spins, what sleeps with what sleeps, pinned and not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

var size = flag.Int("size", 64, "payload in bytes")

func main() {
	b := harness.Bench{Name: "latency", Link: "a veth pair between two namespaces",
		Rounds: 5, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

// Names of variants that are compared.
const (
	cRing  = "C, bare AF_PACKET ring"
	cUDP   = "C, UDP sockets"
	cTCP   = "C, TCP sockets"
	goUDP  = "Go, net package, UDP"
	goTCP  = "Go, net package, TCP"
	ours   = "rawlane, ring"
	packet = "rawlane, packet"
	memory = "rawlane, fabric, one process"

	oneProc = "rawlane, ring, GOMAXPROCS=1"
)

// way is how both ends wait, and whether each has a core of its own.
type way struct {
	spin, pinned bool
}

func (w way) String() string {
	text := "Both ends sleep"
	if w.spin {
		text = "Both ends spin"
	}
	if w.pinned {
		return text + ", each on a core of its own"
	}
	return text + ", where the scheduler puts them"
}

var ways = []way{{true, true}, {false, true}, {true, false}, {false, false}}

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	if *size < 4 || *size > 1400 {
		return r, harness.Misuse("want -size 4 to 1400")
	}
	l := &latency{Bench: b, tables: make(map[way]*harness.Table), pauses: newPauseTable(b.Rounds)}
	for _, w := range ways {
		l.tables[w] = newTable(w, b.Rounds)
		r.Tables = append(r.Tables, l.tables[w])
	}
	r.Tables = append(r.Tables, l.pauses)
	if b.Rows {
		return harness.RowsOf(l.variants()), nil
	}
	if l.pair, err = netpair.New(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.pair.Close()) }()
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, l.variants()); err != nil {
		return r, err
	}
	r.Targets = l.targets()
	return r, nil
}

// latency is the benchmark, the programs that it compares, and a table for each way.
type latency struct {
	*harness.Bench
	pair   *netpair.Pair
	tables map[way]*harness.Table
	pauses *harness.Table // of the cores
}

func (l *latency) variants() (all []harness.Variant) {
	for _, w := range ways {
		all = append(all, l.inC(w)...)
		all = append(all, l.inGo(w)...)
	}
	return append(all, l.jitter())
}

// inC are the programs in C. A bare ring is for spinning: who sleeps needs no ring.
func (l *latency) inC(w way) (all []harness.Variant) {
	for _, k := range []struct{ name, kind string }{{cRing, "ring"}, {cUDP, "udp"}, {cTCP, "tcp"}} {
		if l.Programs.C == "" || k.kind == "ring" && !w.spin {
			continue
		}
		name := k.name
		all = append(all, harness.Variant{Name: name, Run: func(ctx context.Context) error {
			pair, where, prefix := l.pair, l.pair.IP(1), ""
			if !w.pinned {
				pair = pair.Unpinned()
			}
			if k.kind == "ring" {
				where = netpair.Interface
			} else if !w.spin {
				prefix = "block-"
			}
			echo, ping := prefix+k.kind+"-echo", prefix+k.kind+"-ping"
			_, ns, err := pair.RunC(ctx, l.Programs.C, echo, ping, where, *size, l.Iters)
			if err == nil {
				l.tables[w].AddLatency(name, [4]float64(ns))
			}
			return err
		}})
	}
	return all
}

// inGo are rawlane's links, and beside those that sleep Go's sockets, which always do.
func (l *latency) inGo(w way) (all []harness.Variant) {
	var flags []string
	if !w.spin {
		flags = append(flags, "--spin", "0s")
	}
	ring := slices.Concat(flags, []string{"--link", "ring"})
	if !w.pinned {
		ring = append(ring, "--pin", "none")
		all = append(all, l.rawlane(w, 1, map[string]string{"ring": oneProc}, ring))
	}
	all = append(all, l.rawlane(w, 0, map[string]string{"ring": ours}, ring))
	if w.pinned {
		packets := slices.Concat(flags, []string{"--link", "packet"})
		all = append(all, l.rawlane(w, 0, map[string]string{"packet": packet}, packets))
	}
	if w == (way{true, true}) {
		all = append(all, l.rawlane(w, 0, map[string]string{"fabric": memory}, []string{"--link", "fabric"}))
	}
	if !w.spin {
		nets := map[string]string{"udp": goUDP, "tcp": goTCP}
		all = append(all, l.rawlane(w, 0, nets, slices.Concat(ring, []string{"--beside", "tcp,udp"})))
	}
	return all
}

// rawlane runs the command on so many of Go's processors, and adds the lines of the links that
// have names. 0 is what a user has: without a setting all of the cores that it may run on. Those
// that are pinned have the user's setting, too.
func (l *latency) rawlane(w way, procs int, names map[string]string, flags []string) harness.Variant {
	args := append([]string{"latency", "--size", strconv.Itoa(*size), "--iters", strconv.Itoa(l.Iters)}, flags...)
	if procs == 0 && !w.pinned {
		procs = runtime.NumCPU()
	}
	rows := slices.Sorted(maps.Values(names))
	return harness.Variant{Name: rows[0], Rows: rows, Run: func(ctx context.Context) error {
		type line struct {
			Link string  `json:"link"`
			P50  float64 `json:"p50_us"`
			P99  float64 `json:"p99_us"`
		}
		programs := l.Programs
		if procs > 0 {
			programs.Env = []string{"GOMAXPROCS=" + strconv.Itoa(procs)}
		}
		lines, err := harness.Lines[line](ctx, &programs, args...)
		for _, got := range lines {
			if name := names[got.Link]; name != "" {
				l.tables[w].Add(name, got.P50, got.P99)
			}
		}
		return err
	}}
}

// jitter has rawlane look what takes the first two cores from a program that spins.
func (l *latency) jitter() harness.Variant {
	return harness.Variant{Name: cores[0], Rows: cores[:], Run: func(ctx context.Context) error {
		lines, err := harness.Lines[struct {
			PerS float64 `json:"pauses_per_s"`
			P50  float64 `json:"p50_us"`
		}](ctx, &l.Programs, "jitter", "--seconds", "1", "--least", "10us")
		for i, got := range lines {
			if i < len(cores) {
				l.pauses.Add(cores[i], got.PerS, got.P50)
			}
		}
		return err
	}}
}

// cores are the names of the cores that spinning ends have.
var cores = [2]string{"the first core", "the second core"}

func newPauseTable(rounds int) *harness.Table {
	return &harness.Table{
		Title: fmt.Sprintf("A loop that only looks at the clock: its pauses of 10 us and more; "+
			"median of %d rounds\n%-32s %8s %8s %18s", rounds, "", "a second", "p50, us", "of the rounds"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-32s %8.0f %8.2f %8.0f - %7.0f", r.Name, r.Median(), r.Second(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "pauses_per_s": r.Median(), "p50_us": r.Second(),
				"rounds": r.Rounds(), "lowest_per_s": r.Min(), "highest_per_s": r.Max()}
		},
	}
}

func newTable(w way, rounds int) *harness.Table {
	t := harness.NewLatencyTable(w.String()+": half a round trip", *size, rounds)
	line := t.JSON
	t.JSON = func(r *harness.Row) map[string]any {
		of := line(r)
		of["way"] = w.String()
		return of
	}
	t.AddRatio("/ C ring", "ratio_to_c_ring", cRing)
	t.AddRatio("/ C UDP", "ratio_to_c_udp", cUDP)
	return t
}

// targets are the ratios of the ring to others that were not left out, of the same way.
func (l *latency) targets() (all []harness.Target) {
	for _, k := range []struct {
		way   way
		what  string
		to    string
		limit float64
	}{
		{way{true, true}, "spinning: ring at most 1.2 x the bare ring in C", cRing, 1.2},
		{way{true, true}, "spinning: ring at most 0.75 x polled UDP in C", cUDP, 0.75},
		{way{false, true}, "sleeping: ring at most 1.2 x blocking UDP in C", cUDP, 1.2},
		{way{false, true}, "sleeping: ring at most 1.1 x Go's UDP", goUDP, 1.1},
	} {
		t := l.tables[k.way]
		ring := t.Find(ours)
		all = append(all, harness.Target{What: k.what, Got: ring.Over(t.Find(k.to)), Limit: k.limit})
	}
	tail := harness.Target{What: "spinning: its 99th percentile at most 2 x the bare ring's", Limit: 2, Got: math.NaN()}
	spinning := l.tables[way{true, true}]
	if ring, c := spinning.Find(ours), spinning.Find(cRing); ring != nil && c != nil {
		tail.Got = harness.Over(ring.Second(), c.Second())
	}
	return append(all, tail)
}
