//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

const (
	recordLen  = 8
	batch      = 64   // records of a call or a send
	frameBatch = 64   // frames of a sendmmsg, as rawlane's
	frameLen   = 1500 // the payload of a full frame at the usual MTU
	largeMTU   = 9000
	maxRecords = 2_000_000 // as in rawlane bench
)

var (
	smallSizes = []int{64, 128, 256, 512, 1024}
	largeSizes = []int{65536, 1 << 20}
)

// variants take turns in this order. Those that are compared are close together.
var variants = []struct {
	c   bool // needs the C program
	run func(b *bench, ctx context.Context, t *table) error
}{
	{false, (*bench).message},
	{false, (*bench).puts},
	{false, (*bench).longPuts},
	{true, (*bench).tcpStream},
	{false, (*bench).putsOfLargeFrames},
	{false, (*bench).records},
	{true, (*bench).tcpRecords},
	{true, (*bench).tcpPing},
}

// line is what the command prints.
type line struct {
	Size    int     `json:"size_bytes"`
	P50     float64 `json:"p50_us"`
	MB      float64 `json:"mb_per_s"`
	Msgs    float64 `json:"msgs_per_s"`
	Batched float64 `json:"batched_msgs_per_s"`
	Duplex  float64 `json:"duplex_mb_per_s"`
}

// measure runs a benchmark of the command.
func (b *bench) measure(ctx context.Context, what string, sizes []int, more ...string) ([]line, error) {
	var words []string
	for _, s := range sizes {
		words = append(words, strconv.Itoa(s))
	}
	args := append([]string{what, "--link", "ring", "--iters", strconv.Itoa(b.iters),
		"--size", strings.Join(words, ",")}, more...)
	lines, err := harness.Lines[line](ctx, b.rawlane, args...)
	if err == nil && len(lines) != len(sizes) {
		err = fmt.Errorf("unexpected output of rawlane: %d lines, want %d", len(lines), len(sizes))
	}
	return lines, err
}

func (b *bench) message(ctx context.Context, t *table) error {
	lines, err := b.measure(ctx, "latency", []int{4})
	if err == nil {
		t.add(latency, plain4, lines[0].P50)
	}
	return err
}

func (b *bench) size() string { return "--bytes=" + strconv.Itoa(b.bytes) }

func (b *bench) puts(ctx context.Context, t *table) error {
	lines, err := b.measure(ctx, "put", slices.Concat([]int{4}, smallSizes), b.size())
	if err != nil {
		return err
	}
	t.add(latency, put4, lines[0].P50)
	for _, l := range lines[1:] {
		t.add(small, putOf(l.Size, frameLen), l.MB)
	}
	return nil
}

// turns is how often long writes and frames in C take turns in a round: they differ by less than
// the machine does from one second to the next.
const turns = 4

func (b *bench) longPuts(ctx context.Context, t *table) error {
	for range turns {
		lines, err := b.measure(ctx, "put", largeSizes, b.size())
		if err != nil {
			return err
		}
		addPuts(t, lines, frameLen)
		if b.program == "" {
			continue
		}
		if err := errors.Join(b.frames(ctx, t), b.framesBothWays(ctx, t)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) putsOfLargeFrames(ctx context.Context, t *table) error {
	lines, err := b.measure(ctx, "put", largeSizes, b.size(), "--mtu="+strconv.Itoa(largeMTU))
	addPuts(t, lines, largeMTU)
	return err
}

func addPuts(t *table, lines []line, mtu int) {
	for _, l := range lines {
		t.add(oneWay, putOf(l.Size, mtu), l.MB)
		t.add(bothWays, putOf(l.Size, mtu), l.Duplex)
	}
}

func (b *bench) records(ctx context.Context, t *table) error {
	lines, err := b.measure(ctx, "fifo", []int{recordLen, 64}, b.size())
	if err != nil {
		return err
	}
	t.add(records, pushEach, lines[0].Msgs/1e6)
	t.add(records, pushBatch, lines[0].Batched/1e6)
	t.add(latency, push64, lines[1].P50)
	return nil
}

// runC runs modes of the C program on both nodes, and returns the numbers that they print.
func (b *bench) runC(
	ctx context.Context, answer, ask, where string, numbers ...int,
) (answered, asked []float64, err error) {
	args := func(mode, where string, node int) []string {
		words := []string{b.program, mode, where, strconv.Itoa(b.pair.Core(node))}
		for _, n := range numbers {
			words = append(words, strconv.Itoa(n))
		}
		return words
	}
	a, q, err := b.pair.Run(ctx, args(answer, netpair.Interface, 1), args(ask, where, 0))
	if err != nil {
		return nil, nil, err
	}
	if answered, err = numbersIn(a); err == nil {
		asked, err = numbersIn(q)
	}
	return answered, asked, err
}

func numbersIn(out string) (all []float64, err error) {
	for _, word := range strings.Fields(strings.TrimPrefix(out, "ready\n")) {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("unexpected output %q of the C program: %w", out, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// short is the error for too few numbers.
func short(mode string) error { return fmt.Errorf("the C program printed too little: %s", mode) }

func (b *bench) tcpPing(ctx context.Context, t *table) error {
	_, asked, err := b.runC(ctx, "tcp-echo", "tcp-ping", b.pair.IP(1), 64, b.iters)
	if err != nil {
		return err
	}
	if len(asked) != 4 {
		return short("tcp-ping")
	}
	t.add(latency, tcp64, asked[1]/1e3)
	return nil
}

// send returns how many records a second TCP carries.
func (b *bench) send(ctx context.Context, sink string, size, count, batch int) (float64, error) {
	_, asked, err := b.runC(ctx, sink, "tcp-send", b.pair.IP(1), size, count, batch)
	if err != nil {
		return 0, err
	}
	if len(asked) != 1 {
		return 0, short("tcp-send")
	}
	return float64(count) / asked[0] * 1e9, nil
}

// sinks are the ways to receive.
var sinks = []struct{ mode, name string }{{"tcp-sink", "blocking"}, {"tcp-sink-polled", "polled"}}

func (b *bench) tcpRecords(ctx context.Context, t *table) error {
	count := min(b.bytes/recordLen, maxRecords) / batch * batch
	for _, k := range []struct {
		batch int
		name  string
	}{{1, tcpEach}, {batch, tcpBatch}} {
		for _, sink := range sinks {
			rate, err := b.send(ctx, sink.mode, recordLen, count, k.batch)
			if err != nil {
				return err
			}
			t.add(records, k.name+", "+sink.name, rate/1e6)
		}
	}
	return nil
}

// tcpStream writes 64 KiB at a time.
func (b *bench) tcpStream(ctx context.Context, t *table) error {
	const size = 1024
	for _, sink := range sinks {
		rate, err := b.send(ctx, sink.mode, size, b.bytes/size, 65536/size)
		if err != nil {
			return err
		}
		t.add(oneWay, tcpLong+", "+sink.name, rate*size/1e6)
	}
	return nil
}

// ways to send frames.
var frameWays = []struct {
	batch          int
	name, received string
}{{1, frameEach, cameEach}, {frameBatch, frameMany, cameMany}}

// frames counts the frames sent, and those that arrived: nothing makes the sender wait, so on a
// busy machine some are lost.
func (b *bench) frames(ctx context.Context, t *table) error {
	count := b.bytes / frameLen
	for _, way := range frameWays {
		came, ns, err := b.runC(ctx, "ring-sink", "ring-send", netpair.Interface, frameLen, count, way.batch)
		if err != nil {
			return err
		}
		if len(came) != 1 || len(ns) != 1 {
			return short("ring-send")
		}
		t.add(oneWay, way.name, float64(count)*frameLen/ns[0]*1e3)
		t.add(oneWay, way.received, came[0]*frameLen/ns[0]*1e3)
	}
	return nil
}

// framesBothWays makes both ends send for as long as the bytes take at 500 MB/s. The result of each
// way is half of the sum.
func (b *bench) framesBothWays(ctx context.Context, t *table) error {
	ms := max(10, b.bytes/500_000)
	each := frameLen / 2 / float64(ms) / 1e3
	for _, way := range frameWays {
		one, other, err := b.runC(ctx, "ring-both", "ring-both", netpair.Interface, frameLen, ms, way.batch)
		if err != nil {
			return err
		}
		if len(one) != 2 || len(other) != 2 {
			return short("ring-both")
		}
		t.add(bothWays, way.name, (one[0]+other[0])*each)
		t.add(bothWays, way.received, (one[1]+other[1])*each)
	}
	return nil
}
