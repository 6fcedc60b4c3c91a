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
	inBytes, records := "--bytes="+strconv.Itoa(*bytes), min(*bytes/recordLen, maxRecords)/batch*batch
	all := []harness.Variant{
		{Name: plain4, Run: b.command("latency", []int{4}, func(l line) { b.latency.Add(plain4, l.P50) })},
		{Name: fetchAdd, Run: b.command("amo", nil, func(l line) { b.latency.Add(fetchAdd, l.P50/2) })},
		{Name: put4, Rows: append(putsOf(smallSizes, frameLen), put4),
			Run: b.command("put", slices.Concat([]int{4}, smallSizes), func(l line) {
				if l.Size == 4 {
					b.latency.Add(put4, l.P50)
				} else {
					b.small.Add(putOf(l.Size, frameLen), l.MB)
				}
			}, inBytes)},
		{Name: peak, Rows: append(putsOf(largeSizes, frameLen), frameEach, cameEach, frameMany, cameMany),
			Run: b.longPuts(b.command("put", largeSizes, b.addPut(frameLen), inBytes))},
		{Name: tcpLong, Run: b.tcpSend(b.oneWay, "tcp-send", tcpLong, 1024, *bytes/1024, 64, 1024/1e6),
			Rows: bothSinks(tcpLong)},
		{Name: "rawlane, put, large frames", Rows: putsOf(largeSizes, largeMTU),
			Run: b.command("put", largeSizes, b.addPut(largeMTU), inBytes, "--mtu="+strconv.Itoa(largeMTU))},
		{Name: pushEach, Rows: []string{pushEach, pushBatch, push64},
			Run: b.command("fifo", []int{recordLen, 64}, func(l line) {
				if l.Size == recordLen {
					b.records.Add(pushEach, l.Msgs/1e6)
					b.records.Add(pushBatch, l.Batched/1e6)
				} else {
					b.latency.Add(push64, l.P50)
				}
			}, inBytes)},
		{Name: tcpEach, Run: b.tcpSend(b.records, "tcp-send", tcpEach, recordLen, records, 1, 1/1e6),
			Rows: bothSinks(tcpEach)},
		{Name: tcpNagle, Run: b.tcpSend(b.records, "tcp-send-nagle", tcpNagle, recordLen, records, 1, 1/1e6),
			Rows: bothSinks(tcpNagle)},
		{Name: tcpBatch, Run: b.tcpSend(b.records, "tcp-send", tcpBatch, recordLen, records, batch, 1/1e6),
			Rows: bothSinks(tcpBatch)},
		{Name: tcpWritev, Run: b.tcpSend(b.records, "tcp-send-gathered", tcpWritev, recordLen, records, batch, 1/1e6),
			Rows: bothSinks(tcpWritev)},
		{Name: tcp64, Run: b.tcpPing},
	}
	return slices.DeleteFunc(all, func(v harness.Variant) bool {
		return b.Programs.C == "" && strings.HasPrefix(v.Name, "C, ")
	})
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

// command runs a benchmark of the command, for each of some sizes or for the one that it has, and
// adds each line to the tables.
func (b *bench) command(what string, sizes []int, add func(line), more ...string) func(context.Context) error {
	args := append([]string{what, "--link", "ring", "--trains=false", "--iters", strconv.Itoa(b.Iters)}, more...)
	if len(sizes) > 0 {
		args = append(args, "--size", harness.List(sizes))
	}
	return func(ctx context.Context) error {
		lines, err := harness.Lines[line](ctx, &b.Programs, args...)
		if want := max(1, len(sizes)); err == nil && len(lines) != want {
			err = fmt.Errorf("unexpected output of rawlane: %d lines, want %d", len(lines), want)
		}
		if err != nil {
			return err
		}
		for _, l := range lines {
			add(l)
		}
		return nil
	}
}

// addPut adds long writes with an MTU.
func (b *bench) addPut(mtu int) func(line) {
	return func(l line) {
		b.oneWay.Add(putOf(l.Size, mtu), l.MB)
		b.bothWays.Add(putOf(l.Size, mtu), l.Duplex)
	}
}

// turns is how often long writes and frames in C take turns in a round: they differ by less than
// the machine does from one second to the next.
const turns = 4

func (b *bench) longPuts(put func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for range turns {
			err := put(ctx)
			if err == nil && b.Programs.C != "" {
				err = errors.Join(b.frames(ctx), b.framesBothWays(ctx))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// runC runs modes of the C program on both nodes.
func (b *bench) runC(
	ctx context.Context, answer, ask, where string, numbers ...int,
) (answered, asked []float64, err error) {
	return b.pair.RunC(ctx, b.Programs.C, answer, ask, where, numbers...)
}

func (b *bench) tcpPing(ctx context.Context) error {
	_, ns, err := b.runC(ctx, "tcp-echo", "tcp-ping", b.pair.IP(1), 64, b.Iters)
	if err == nil {
		b.latency.AddLatency(tcp64, [4]float64(ns))
	}
	return err
}

// putsOf are the names of rows.
func putsOf(sizes []int, mtu int) (rows []string) {
	for _, size := range sizes {
		rows = append(rows, putOf(size, mtu))
	}
	return rows
}

// sinks are the ways that TCP's receiver waits.
var sinks = []struct{ mode, name string }{{"tcp-sink", "blocking"}, {"tcp-sink-polled", "polled"}}

// bothSinks are the names of a variant's rows, by how its receiver waits.
func bothSinks(name string) (rows []string) {
	for _, sink := range sinks {
		rows = append(rows, name+", "+sink.name)
	}
	return rows
}

// tcpSend adds how many records of a size TCP carries in a second, in a unit, by sends of a batch.
func (b *bench) tcpSend(
	t *table, mode, name string, size, count, batch int, unit float64,
) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, sink := range sinks {
			_, ns, err := b.runC(ctx, sink.mode, mode, b.pair.IP(1), size, count, batch)
			if err != nil {
				return err
			}
			t.Add(name+", "+sink.name, float64(count)/ns[0]*1e9*unit)
		}
		return nil
	}
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
