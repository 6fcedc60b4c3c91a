//go:build linux

// Command udp answers: how close is a link over UDP to what UDP allows in C? It prints half of a
// round trip of 64 bytes beside polled sockets, and the bytes a second of full frames and of remote
// writes beside datagrams in trains (UDP_SEGMENT, UDP_GRO). Full frames have checksums of their
// payloads, or leave these to UDP's, as C's datagrams do.
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

var written = flag.Bool("written", false, "measure trains in C whose bytes are written and read, as well")

func main() {
	b := harness.Bench{Name: "udp", Link: "a veth pair between two namespaces",
		Rounds: 5, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

const (
	cPolled = "C, UDP sockets, polled"
	latency = "rawlane, message"

	cTrains = "C, trains, polled"
	cSleeps = "C, trains, receiver sleeps"
	cSums   = "C, trains, written and read"
	frames  = "rawlane, messages"
	inPlace = "rawlane, messages in place"
	puts    = "rawlane, put of 1 MiB"

	// What is in a message has UDP's checksum alone, as in C's datagrams.
	framesUDP  = frames + ", --checksum header"
	inPlaceUDP = inPlace + ", --checksum header"
)

// Sizes, in bytes: of a full message, of the datagram that it fills, and of a remote write.
const (
	small       = 64
	message     = 1398
	datagramLen = 1432
	train       = 44
	putLen      = 1 << 20
)

// streamShare is how many messages a stream has for each round trip that is measured.
const streamShare = 50

// bench is the benchmark, the programs that it compares, and its tables.
type bench struct {
	*harness.Bench
	pair *netpair.Pair

	latency, stream *harness.Table
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	b := bench{Bench: hb, latency: newLatency(hb.Rounds), stream: newStream(hb.Rounds)}
	r.Tables = []*harness.Table{b.latency, b.stream}
	if hb.Rows {
		return harness.RowsOf(b.variants()), nil
	}
	if b.pair, err = netpair.New(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.pair.Close()) }()
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, b.variants()); err != nil {
		return r, err
	}
	r.Targets = []harness.Target{
		{What: "64 bytes at most 1.25 x polled UDP in C", Limit: 1.25,
			Got: b.latency.Find(latency).Over(b.latency.Find(cPolled))},
		{
			What:  "messages in place, with UDP's checksum, at least 0.8 x trains in C whose receiver sleeps",
			Limit: 0.8, AtLeast: true,
			Got: b.stream.Find(inPlaceUDP).Over(b.stream.Find(cSleeps)),
		},
		{What: "put of 1 MiB at least 0.4 x trains in C whose receiver sleeps", Limit: 0.4, AtLeast: true,
			Got: b.stream.Find(puts).Over(b.stream.Find(cSleeps))}, // 2 GB/s where those reach 5
	}
	return r, nil
}

func newLatency(rounds int) *harness.Table {
	t := &harness.Table{
		Title: fmt.Sprintf("Half a round trip of %d bytes, us; median of %d rounds\n%-44s %8s %8s",
			small, rounds, "", "p50", "p99"),
		Text:  func(r *harness.Row) string { return fmt.Sprintf("%-44s %8.2f %8.2f", r.Name, r.Median(), r.Second()) },
		JSON:  harness.LatencyJSON,
		Width: 8,
	}
	t.AddRatio("/ C", "ratio_to_c", cPolled)
	return t
}

func newStream(rounds int) *harness.Table {
	t := &harness.Table{
		Title: fmt.Sprintf("Bytes a second that arrive, MB/s; median of %d rounds\n%-44s %8s", rounds, "", "MB/s"),
		Text:  func(r *harness.Row) string { return fmt.Sprintf("%-44s %8.0f", r.Name, r.Median()) },
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "mb_per_s": r.Median(), "rounds": r.Rounds()}
		},
		Width: 8,
	}
	t.AddRatio("/ C", "ratio_to_c", cTrains)
	return t
}

// line is what the command prints.
type line struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	MB  float64 `json:"mb_per_s"`
}

func (b *bench) variants() (all []harness.Variant) {
	add := func(name string, run func(context.Context) error) {
		all = append(all, harness.Variant{Name: name, Run: run})
	}
	if b.Programs.C != "" {
		add(cPolled, func(ctx context.Context) error {
			_, ns, err := b.pair.RunC(ctx, b.Programs.C, "udp-echo", "udp-ping", b.pair.IP(1), small, b.Iters)
			if err == nil {
				b.latency.AddLatency(cPolled, [4]float64(ns))
			}
			return err
		})
	}
	add(latency, b.command(func(l line) { b.latency.Add(latency, l.P50, l.P99) },
		"latency", "--size", strconv.Itoa(small), "--iters", strconv.Itoa(b.Iters)))
	if b.Programs.C != "" {
		add(cTrains, b.trains(cTrains, "gso-sink", "gso-send"))
		add(cSleeps, b.trains(cSleeps, "block-gso-sink", "gso-send"))
		if *written {
			add(cSums, b.trains(cSums, "sum-gso-sink", "sum-gso-send"))
		}
	}
	rate := []string{"rate", "--size", strconv.Itoa(message), "--batch", strconv.Itoa(train),
		"--iters", strconv.Itoa(b.Iters * streamShare)}
	stream := func(row string, flags ...string) {
		add(row, b.command(func(l line) { b.stream.Add(row, l.MB) }, slices.Concat(rate, flags)...))
	}
	stream(frames)
	stream(inPlace, "--in-place")
	stream(framesUDP, "--checksum", "header")
	stream(inPlaceUDP, "--checksum", "header", "--in-place")
	add(puts, b.command(func(l line) { b.stream.Add(puts, l.MB) },
		"put", "--size", strconv.Itoa(putLen), "--iters", strconv.Itoa(max(b.Iters/20, 10))))
	return all
}

// trains measures the C program's trains.
func (b *bench) trains(row, sink, send string) func(context.Context) error {
	return func(ctx context.Context) error {
		rate, err := b.pair.TrainsOfC(ctx, b.Programs.C, sink, send, datagramLen, b.Iters*streamShare, train)
		if err == nil {
			b.stream.Add(row, rate/1e6)
		}
		return err
	}
}

// command runs a benchmark of the command over udp, and adds its line.
func (b *bench) command(add func(line), args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := harness.Line[line](ctx, &b.Programs, append(args, "--link", "udp")...)
		if err == nil {
			add(got)
		}
		return err
	}
}
