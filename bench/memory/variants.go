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

// variants take turns in this order. Those that are compared are close together: the n-th results
// of rows with equally many results were measured together.
func (b *bench) variants() []harness.Variant {
	all := []harness.Variant{
		{Name: "message", Run: b.message},
		{Name: "put", Run: b.puts},
		{Name: "long put", Run: b.longPuts},
		{Name: cPrefix + "TCP stream", Run: b.tcpStream},
		{Name: "put in large frames", Run: b.putsOfLargeFrames},
		{Name: "push", Run: b.pushes},
		{Name: cPrefix + "TCP records", Run: b.tcpRecords},
		{Name: cPrefix + "TCP ping", Run: b.tcpPing},
	}
	return slices.DeleteFunc(all, func(v harness.Variant) bool {
		return b.programs.C == "" && strings.HasPrefix(v.Name, cPrefix)
	})
}

// cPrefix begins the names of variants in C.
const cPrefix = "C, "

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
	args := append([]string{what, "--link", "ring", "--iters", strconv.Itoa(b.Iters),
		"--size", strings.Join(words, ",")}, more...)
	lines, err := harness.Lines[line](ctx, &b.programs, args...)
	if err == nil && len(lines) != len(sizes) {
		err = fmt.Errorf("unexpected output of rawlane: %d lines, want %d", len(lines), len(sizes))
	}
	return lines, err
}

func (b *bench) message(ctx context.Context) error {
	lines, err := b.measure(ctx, "latency", []int{4})
	if err == nil {
		b.latency.Add(plain4, lines[0].P50)
	}
	return err
}

func (b *bench) size() string { return "--bytes=" + strconv.Itoa(*bytes) }

func (b *bench) puts(ctx context.Context) error {
	lines, err := b.measure(ctx, "put", slices.Concat([]int{4}, smallSizes), b.size())
	if err != nil {
		return err
	}
	b.latency.Add(put4, lines[0].P50)
	for _, l := range lines[1:] {
		b.small.Add(putOf(l.Size, frameLen), l.MB)
	}
	return nil
}

// turns is how often long writes and frames in C take turns in a round: they differ by less than
// the machine does from one second to the next.
const turns = 4

func (b *bench) longPuts(ctx context.Context) error {
	for range turns {
		lines, err := b.measure(ctx, "put", largeSizes, b.size())
		if err != nil {
			return err
		}
		b.addPuts(lines, frameLen)
		if b.programs.C == "" {
			continue
		}
		if err := errors.Join(b.frames(ctx), b.framesBothWays(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) putsOfLargeFrames(ctx context.Context) error {
	lines, err := b.measure(ctx, "put", largeSizes, b.size(), "--mtu="+strconv.Itoa(largeMTU))
	b.addPuts(lines, largeMTU)
	return err
}

func (b *bench) addPuts(lines []line, mtu int) {
	for _, l := range lines {
		b.oneWay.Add(putOf(l.Size, mtu), l.MB)
		b.bothWays.Add(putOf(l.Size, mtu), l.Duplex)
	}
}

func (b *bench) pushes(ctx context.Context) error {
	lines, err := b.measure(ctx, "fifo", []int{recordLen, 64}, b.size())
	if err != nil {
		return err
	}
	b.records.Add(pushEach, lines[0].Msgs/1e6)
	b.records.Add(pushBatch, lines[0].Batched/1e6)
	b.latency.Add(push64, lines[1].P50)
	return nil
}

// runC runs modes of the C program on both nodes.
func (b *bench) runC(
	ctx context.Context, answer, ask, where string, numbers ...int,
) (answered, asked []float64, err error) {
	return b.pair.RunC(ctx, b.programs.C, answer, ask, where, numbers...)
}

func (b *bench) tcpPing(ctx context.Context) error {
	_, ns, err := b.runC(ctx, "tcp-echo", "tcp-ping", b.pair.IP(1), 64, b.Iters)
	if err == nil {
		b.latency.AddLatency(tcp64, [4]float64(ns))
	}
	return err
}

// send returns how many records a second TCP carries.
func (b *bench) send(ctx context.Context, sink string, size, count, batch int) (float64, error) {
	_, ns, err := b.runC(ctx, sink, "tcp-send", b.pair.IP(1), size, count, batch)
	if err != nil {
		return 0, err
	}
	return float64(count) / ns[0] * 1e9, nil
}

// sinks are the ways to receive.
var sinks = []struct{ mode, name string }{{"tcp-sink", "blocking"}, {"tcp-sink-polled", "polled"}}

func (b *bench) tcpRecords(ctx context.Context) error {
	count := min(*bytes/recordLen, maxRecords) / batch * batch
	for _, k := range []struct {
		batch int
		name  string
	}{{1, tcpEach}, {batch, tcpBatch}} {
		for _, sink := range sinks {
			rate, err := b.send(ctx, sink.mode, recordLen, count, k.batch)
			if err != nil {
				return err
			}
			b.records.Add(k.name+", "+sink.name, rate/1e6)
		}
	}
	return nil
}

// tcpStream writes 64 KiB at a time.
func (b *bench) tcpStream(ctx context.Context) error {
	const size = 1024
	for _, sink := range sinks {
		rate, err := b.send(ctx, sink.mode, size, *bytes/size, 65536/size)
		if err != nil {
			return err
		}
		b.oneWay.Add(tcpLong+", "+sink.name, rate*size/1e6)
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
func (b *bench) frames(ctx context.Context) error {
	count := *bytes / frameLen
	for _, way := range frameWays {
		came, ns, err := b.runC(ctx, "ring-sink", "ring-send", netpair.Interface, frameLen, count, way.batch)
		if err != nil {
			return err
		}
		b.oneWay.Add(way.name, float64(count)*frameLen/ns[0]*1e3)
		b.oneWay.Add(way.received, came[0]*frameLen/ns[0]*1e3)
	}
	return nil
}

// framesBothWays makes both ends send for as long as the bytes take at 500 MB/s. The result of each
// way is half of the sum.
func (b *bench) framesBothWays(ctx context.Context) error {
	ms := max(10, *bytes/500_000)
	each := frameLen / 2 / float64(ms) / 1e3
	for _, way := range frameWays {
		one, other, err := b.runC(ctx, "ring-both", "ring-both", netpair.Interface, frameLen, ms, way.batch)
		if err != nil {
			return err
		}
		b.bothWays.Add(way.name, (one[0]+other[0])*each)
		b.bothWays.Add(way.received, (one[1]+other[1])*each)
	}
	return nil
}
