//go:build linux

// Command latency answers: how close is a rawlane message to what the kernel allows, and how far
// ahead of UDP and TCP? It prints half of a round trip between two processes on cores and in
// network namespaces of their own, for a bare ring in C, sockets in C that are polled, Go's
// sockets, and rawlane's links.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/floor"
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
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

// sample is one run's numbers: half round trips, in ns.
type sample struct{ min, p50, p99, max float64 }

// contestant is a way to exchange messages.
type contestant struct {
	name    string
	run     func(ctx context.Context) (sample, error)
	samples []sample
}

// result is a contestant's line, also as JSON.
type result struct {
	Name    string  `json:"name"`
	Size    int     `json:"size_bytes"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	ToRing  float64 `json:"ratio_to_c_ring,omitempty"`
	ToUDP   float64 `json:"ratio_to_c_udp,omitempty"`
	Rounds  int     `json:"rounds"`
	LowP50  float64 `json:"lowest_p50_us"`
	HighP50 float64 `json:"highest_p50_us"`
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("latency", flag.ExitOnError)
	size := flags.Int("size", 64, "payload in bytes")
	iters := flags.Int("iters", 20000, "round trips per contestant and round")
	rounds := flags.Int("rounds", 5, "rounds; each contestant's median counts")
	asJSON := flags.Bool("json", false, "print JSON lines")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *size < 4 || *size > 1400 || *iters < 100 || *rounds < 1 {
		return errors.New("want -size 4 to 1400, -iters 100 or more, -rounds 1 or more")
	}
	r, err := rig.New()
	if err != nil {
		return err
	}
	all, err := contestants(ctx, r, *size, *iters)
	if err == nil {
		err = compete(ctx, all, *rounds)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if *asJSON {
		return reportJSON(out, all, *size)
	}
	report(out, all, *size)
	return nil
}

func contestants(ctx context.Context, r *rig.Rig, size, iters int) (all []*contestant, err error) {
	add := func(name string, run func(context.Context) (sample, error)) {
		all = append(all, &contestant{name: name, run: run})
	}
	numbers := []string{strconv.Itoa(size), strconv.Itoa(iters)}
	c, err := floor.Build(r.Dir())
	switch {
	case errors.Is(err, floor.ErrNoCompiler):
		fmt.Fprintf(os.Stderr, "%v: the C rows are left out, and with them the ratios\n", err)
	case err != nil:
		return nil, err
	default:
		for _, k := range []struct{ name, kind, where string }{
			{cRing, "ring", rig.Interface}, {cUDP, "udp", r.IP(1)}, {"C, TCP sockets, polled", "tcp", r.IP(1)},
		} {
			add(k.name, func(ctx context.Context) (sample, error) {
				_, out, err := r.Pair(ctx, []string{c, k.kind + "-echo", rig.Interface, strconv.Itoa(r.Core(1))},
					append([]string{c, k.kind + "-ping", k.where, strconv.Itoa(r.Core(0))}, numbers...))
				return parse(out, err)
			})
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, network := range []string{"udp", "tcp"} {
		add("Go, net package, "+strings.ToUpper(network), func(ctx context.Context) (sample, error) {
			_, out, err := r.Pair(ctx, []string{self, twinPrefix + "echo", network, r.IP(1)},
				append([]string{self, twinPrefix + "ping", network, r.IP(1)}, numbers...))
			return parse(out, err)
		})
	}
	rawlane, err := rig.Rawlane(ctx, r.Dir())
	if err != nil {
		return nil, err
	}
	for _, link := range []string{"ring", "packet", "fabric"} {
		add("rawlane, "+link, func(ctx context.Context) (sample, error) { return measure(ctx, rawlane, link, size, iters) })
	}
	return all, nil
}

// Names that others are compared with.
const (
	cRing = "C, bare AF_PACKET ring, polled"
	cUDP  = "C, UDP sockets, polled"
)

func parse(out string, err error) (s sample, _ error) {
	if err != nil {
		return s, err
	}
	if n, err := fmt.Sscan(out, &s.min, &s.p50, &s.p99, &s.max); n != 4 {
		return s, fmt.Errorf("unexpected output %q: %w", out, err)
	}
	return s, nil
}

// measure runs the command that users run, and that makes its own namespaces like the rig's.
func measure(ctx context.Context, rawlane, link string, size, iters int) (s sample, err error) {
	cmd := exec.CommandContext(ctx, rawlane, "bench", "latency", "--link", link, "--size", strconv.Itoa(size), "--iters", strconv.Itoa(iters), "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	var line struct {
		Min float64 `json:"min_us"`
		P50 float64 `json:"p50_us"`
		P99 float64 `json:"p99_us"`
		Max float64 `json:"max_us"`
	}
	if err := json.Unmarshal(out, &line); err != nil {
		return s, err
	}
	return sample{line.Min * 1e3, line.P50 * 1e3, line.P99 * 1e3, line.Max * 1e3}, nil
}

// compete runs the rounds. Contestants take turns, so that a slow moment of the machine meets all.
func compete(ctx context.Context, all []*contestant, rounds int) error {
	for range rounds {
		for _, c := range all {
			s, err := c.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
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

// targets are what this project wants to reach.
var targets = []struct {
	name, of, to string
	limit        float64
}{
	{"ring at most 1.5 x the bare ring in C", "rawlane, ring", cRing, 1.5},
	{"ring at most 0.75 x polled UDP in C", "rawlane, ring", cUDP, 0.75},
	{"ring 12 x faster than Go's UDP", "rawlane, ring", "Go, net package, UDP", 1. / 12},
	{"ring 12 x faster than Go's TCP", "rawlane, ring", "Go, net package, TCP", 1. / 12},
}

// results compares each contestant with the two in C.
func results(all []*contestant, size int) (lines []result) {
	p50 := medians(all)
	for _, c := range all {
		m := c.median()
		r := result{Name: c.name, Size: size, P50: m.p50 / 1e3, P99: m.p99 / 1e3, Rounds: len(c.samples),
			LowP50: c.samples[0].p50 / 1e3, HighP50: c.samples[len(c.samples)-1].p50 / 1e3}
		if ring := p50[cRing]; ring > 0 {
			r.ToRing, r.ToUDP = m.p50/ring, m.p50/p50[cUDP]
		}
		lines = append(lines, r)
	}
	return lines
}

func medians(all []*contestant) map[string]float64 {
	p50 := make(map[string]float64)
	for _, c := range all {
		p50[c.name] = c.median().p50
	}
	return p50
}

func reportJSON(out io.Writer, all []*contestant, size int) error {
	lines := json.NewEncoder(out)
	for _, r := range results(all, size) {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func report(out io.Writer, all []*contestant, size int) {
	fmt.Fprintf(out, "Half a round trip, %d bytes, us; median of %d rounds\n%-32s %8s %8s %18s %8s %8s\n",
		size, len(all[0].samples), "", "p50", "p99", "p50 of the rounds", "/ C ring", "/ C UDP")
	for _, r := range results(all, size) {
		fmt.Fprintf(out, "%-32s %8.2f %8.2f %8.2f - %7.2f %8.2f %8.2f\n", r.Name, r.P50, r.P99, r.LowP50, r.HighP50, r.ToRing, r.ToUDP)
	}
	fmt.Fprintln(out)
	p50 := medians(all)
	for _, t := range targets {
		if p50[t.to] == 0 {
			continue
		}
		verdict := "met"
		if p50[t.of] > t.limit*p50[t.to] {
			verdict = "NOT met"
		}
		fmt.Fprintf(out, "%-40s %-8s (%.2f, limit %.3f)\n", t.name, verdict, p50[t.of]/p50[t.to], t.limit)
	}
}
