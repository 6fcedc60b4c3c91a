//go:build linux

// Command latency answers: how close is a rawlane message to what the kernel allows, and how far
// ahead of UDP and TCP? It prints half of a round trip between two processes on cores and in
// network namespaces of their own, for a bare ring in C, polled sockets in C, Go's sockets, and
// rawlane's links.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

var size = flag.Int("size", 64, "payload in bytes")

func main() {
	b := harness.Bench{Name: "latency", Rounds: 5, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

// Names of variants that are compared.
const (
	cRing = "C, bare AF_PACKET ring, polled"
	cUDP  = "C, UDP sockets, polled"
	goUDP = "Go, net package, UDP"
	goTCP = "Go, net package, TCP"
	ours  = "rawlane, ring"
)

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	if *size < 4 || *size > 1400 {
		return r, errors.New("want -size 4 to 1400")
	}
	p, err := netpair.New()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	programs, err := harness.Build(ctx, p.Dir())
	if err != nil {
		return r, err
	}
	t := newTable(b.Rounds)
	if err := b.RunRounds(ctx, variants(p, &programs, t, b.Iters)); err != nil {
		return r, err
	}
	return harness.Report{Tables: []*harness.Table{t}, Targets: targets(t)}, nil
}

// variants add to t. Go's sockets are measured by rawlane, beside its own link.
func variants(p *netpair.Pair, programs *harness.Programs, t *harness.Table, iters int) (all []harness.Variant) {
	for _, k := range []struct{ name, kind, where string }{
		{cRing, "ring", netpair.Interface}, {cUDP, "udp", p.IP(1)}, {"C, TCP sockets, polled", "tcp", p.IP(1)},
	} {
		if programs.C == "" {
			break
		}
		all = append(all, harness.Variant{Name: k.name, Run: func(ctx context.Context) error {
			_, ns, err := p.RunC(ctx, programs.C, k.kind+"-echo", k.kind+"-ping", k.where, *size, iters)
			if err == nil {
				t.AddLatency(k.name, [4]float64(ns))
			}
			return err
		}})
	}
	links := map[string]string{
		"udp": goUDP, "tcp": goTCP, "ring": ours, "packet": "rawlane, packet", "fabric": "rawlane, fabric",
	}
	for _, args := range [][]string{{"ring", "--beside", "tcp,udp"}, {"packet"}, {"fabric"}} {
		all = append(all, harness.Variant{Name: links[args[0]], Run: func(ctx context.Context) error {
			type line struct {
				Link string  `json:"link"`
				P50  float64 `json:"p50_us"`
				P99  float64 `json:"p99_us"`
			}
			lines, err := harness.Lines[line](ctx, programs, append([]string{"latency", "--size", strconv.Itoa(*size),
				"--iters", strconv.Itoa(iters), "--link"}, args...)...)
			for _, l := range slices.Backward(lines) { // Go's stand above the ring
				t.Add(links[l.Link], l.P50, l.P99)
			}
			return err
		}})
	}
	return all
}

func newTable(rounds int) *harness.Table {
	t := &harness.Table{
		Title: fmt.Sprintf("Half a round trip, %d bytes, us; median of %d rounds\n%-32s %8s %8s %18s",
			*size, rounds, "", "p50", "p99", "p50 of the rounds"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-32s %8.2f %8.2f %8.2f - %7.2f", r.Name, r.Median(), r.Second(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			line := harness.LatencyJSON(r)
			line["size_bytes"] = *size
			return line
		},
		Width: 8,
	}
	t.AddRatio("/ C ring", "ratio_to_c_ring", cRing)
	t.AddRatio("/ C UDP", "ratio_to_c_udp", cUDP)
	return t
}

// targets are the ratios of the ring to others that were not left out.
func targets(t *harness.Table) []harness.Target {
	ring := t.Find(ours)
	return []harness.Target{
		{What: "ring at most 1.5 x the bare ring in C", Got: ring.Over(t.Find(cRing)), Limit: 1.5},
		{What: "ring at most 0.75 x polled UDP in C", Got: ring.Over(t.Find(cUDP)), Limit: 0.75},
		{What: "ring 12 x faster than Go's UDP", Got: ring.Over(t.Find(goUDP)), Limit: 1. / 12},
		{What: "ring 12 x faster than Go's TCP", Got: ring.Over(t.Find(goTCP)), Limit: 1. / 12},
	}
}
