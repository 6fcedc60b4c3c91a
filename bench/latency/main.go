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
	"os"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/baseline"
	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], goPrefix) {
		goEnd(os.Args[1:])
		return
	}
	size := 64
	b := harness.Bench{
		Name: "latency", Rounds: 5, Iters: 20000, MinIters: 100,
		Flags: func(f *flag.FlagSet) { f.IntVar(&size, "size", size, "payload in bytes") },
		Run: func(ctx context.Context, o harness.Options) (harness.Report, error) {
			return run(ctx, o, size)
		},
	}
	b.Main()
}

type variant = harness.Variant[harness.Latency]

func run(ctx context.Context, o harness.Options, size int) (harness.Report, error) {
	if size < 4 || size > 1400 {
		return nil, errors.New("want -size 4 to 1400")
	}
	p, err := netpair.New()
	if err != nil {
		return nil, err
	}
	all, err := variants(ctx, p, size, o.Iters)
	if err == nil {
		err = harness.Rounds(ctx, all, o.Rounds)
	}
	return newReport(all, size), errors.Join(err, p.Close())
}

func variants(ctx context.Context, p *netpair.Pair, size, iters int) (all []*variant, err error) {
	add := func(name string, run func(context.Context) (harness.Latency, error)) {
		all = append(all, &variant{Name: name, Run: run})
	}
	numbers := []string{strconv.Itoa(size), strconv.Itoa(iters)}
	c, err := baseline.BuildIfPossible(p.Dir())
	if err != nil {
		return nil, err
	}
	for _, k := range []struct{ name, kind, where string }{
		{cRing, "ring", netpair.Interface}, {cUDP, "udp", p.IP(1)}, {"C, TCP sockets, polled", "tcp", p.IP(1)},
	} {
		if c == "" {
			break
		}
		add(k.name, func(ctx context.Context) (harness.Latency, error) {
			echo := []string{c, k.kind + "-echo", netpair.Interface, strconv.Itoa(p.Core(1))}
			ping := append([]string{c, k.kind + "-ping", k.where, strconv.Itoa(p.Core(0))}, numbers...)
			_, out, err := p.Run(ctx, echo, ping)
			return harness.ParseLatency(out, err)
		})
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, network := range []string{"udp", "tcp"} {
		add("Go, net package, "+strings.ToUpper(network), func(ctx context.Context) (harness.Latency, error) {
			_, out, err := p.Run(ctx, []string{self, goPrefix + "echo", p.IP(1)},
				append([]string{self, goPrefix + "ping", p.IP(1), network}, numbers...))
			return harness.ParseLatency(out, err)
		})
	}
	rawlane, err := harness.BuildRawlane(ctx, p.Dir())
	if err != nil {
		return nil, err
	}
	for _, link := range []string{"ring", "packet", "fabric"} {
		add("rawlane, "+link, func(ctx context.Context) (harness.Latency, error) {
			return measure(ctx, rawlane, link, size, iters)
		})
	}
	return all, nil
}

// Names of variants that the others are compared with.
const (
	cRing = "C, bare AF_PACKET ring, polled"
	cUDP  = "C, UDP sockets, polled"
)

// measure runs "rawlane bench latency".
func measure(ctx context.Context, r harness.Rawlane, link string, size, iters int) (harness.Latency, error) {
	type line struct {
		Min float64 `json:"min_us"`
		P50 float64 `json:"p50_us"`
		P99 float64 `json:"p99_us"`
		Max float64 `json:"max_us"`
	}
	lines, err := harness.Lines[line](ctx, r, "latency", "--link", link,
		"--size", strconv.Itoa(size), "--iters", strconv.Itoa(iters))
	if err != nil {
		return harness.Latency{}, err
	}
	l := lines[0]
	return harness.Latency{Min: l.Min * 1e3, P50: l.P50 * 1e3, P99: l.P99 * 1e3, Max: l.Max * 1e3}, nil
}
