//go:build linux

// Command xdp answers: what does AF_XDP gain over AF_PACKET on this kernel, and how close is a
// message over it to a bare socket in C? On a veth pair the kernel copies in all modes; what a NIC
// gains that writes the memory itself is not seen here. Trains of frames, which ring sends and xdp
// does not, stand beside for their rate.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

var size = flag.Int("size", 64, "payload in bytes")

func main() {
	b := harness.Bench{Name: "xdp", Link: "a veth pair between two namespaces",
		Rounds: 5, Iters: 20_000, MinIters: 100, Run: run}
	b.Main()
}

const (
	headerLen = 20 // rawlane's: the C programs send frames of the same length
	batch     = 32 // frames that a system call sends, in rawlane and in C
	perPing   = 20 // messages sent for each round trip that is measured
)

// Rows.
const (
	cRing      = "C, AF_PACKET ring"
	cXSK       = "C, AF_XDP, generic"
	cXSKNative = "C, AF_XDP, native"
	oursRing   = "rawlane, ring"
	ours       = "rawlane, xdp, generic"
	oursNative = "rawlane, xdp, native"

	single = "rawlane, ring, frames one by one"
	trains = "rawlane, ring, trains"

	cBatch  = "C, AF_PACKET, sendmmsg of 32"
	cSingle = "C, AF_PACKET, one send each"
	cTxRing = "C, AF_PACKET, transmit ring"

	cXSKBatch       = "C, AF_XDP, generic, 32 a call"
	cXSKNativeBatch = "C, AF_XDP, native, 32 a call"
)

// bench is the benchmark, the programs that it compares, and its tables.
type bench struct {
	*harness.Bench
	pair *netpair.Pair

	pings, rates harness.Table
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	if *size < 8 || *size > 1400 {
		return r, harness.Misuse("want -size 8 to 1400")
	}
	b := bench{Bench: hb}
	b.makeTables()
	if hb.Rows {
		return harness.RowsOf(b.variants()), nil
	}
	if b.pair, err = netpair.New(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.pair.Close()) }()
	if err := b.pair.XDP(); err != nil {
		return r, err
	}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, b.variants()); err != nil {
		return r, err
	}
	r.Tables = []*harness.Table{&b.pings, &b.rates}
	r.Targets = b.targets()
	return r, nil
}

func (b *bench) makeTables() {
	b.pings = *harness.NewLatencyTable("Both ends spin: half a round trip", *size, b.Rounds)
	b.pings.Width = 10
	b.pings.AddRatio("/ C AF_XDP", "ratio_to_c_xdp", cXSK)
	b.pings.AddRatio("/ ring", "ratio_to_ring", oursRing)
	b.rates = harness.Table{
		Title: fmt.Sprintf("Messages of %d bytes sent a second by one core; median of %d rounds\n%-32s %12s %8s",
			*size, b.Rounds, "", "msgs/s", "arrived"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-32s %12.0f %7.1f%%", r.Name, r.Median(), 100*r.Second())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"name": r.Name, "size_bytes": *size,
				"tx_msgs_per_s": r.Median(), "arrived": r.Second()}
		},
		Width: 10,
	}
	b.rates.AddRatio("/ C batch", "ratio_to_c_batch", cBatch)
	b.rates.AddRatio("/ C AF_XDP", "ratio_to_c_xdp", cXSKBatch)
	b.rates.AddRatio("/ ring", "ratio_to_ring", single)
}

// variants take turns in this order: those that are compared are neighbours.
func (b *bench) variants() (all []harness.Variant) {
	if b.Programs.C != "" {
		all = append(all, b.cPing(cRing, "ring-"), b.cPing(cXSK, "xsk-"))
	}
	all = append(all, b.ping(ours, "xdp", "--xdp-mode=generic"), b.ping(oursRing, "ring"))
	if b.Programs.C != "" {
		all = append(all, b.cPing(cXSKNative, "native-xsk-"))
	}
	all = append(all, b.ping(oursNative, "xdp", "--xdp-mode=native"))
	if b.Programs.C != "" {
		all = append(all, b.cRate(cBatch, "ring-", "send", batch), b.cRate(cTxRing, "ring-", "txring", batch),
			b.cRate(cSingle, "ring-", "send", 1), b.cRate(cXSKBatch, "xsk-", "send", batch))
	}
	all = append(all, b.rate(ours, "xdp", "--xdp-mode=generic"), b.rate(single, "ring", "--trains=false"))
	if b.Programs.C != "" {
		all = append(all, b.cRate(cXSKNativeBatch, "native-xsk-", "send", batch))
	}
	return append(all, b.rate(oursNative, "xdp", "--xdp-mode=native"), b.rate(trains, "ring"))
}

func (b *bench) cPing(name, kind string) harness.Variant {
	return harness.Variant{Name: name, Run: func(ctx context.Context) error {
		_, ns, err := b.pair.RunC(ctx, b.Programs.C, kind+"echo", kind+"ping", netpair.Interface,
			*size+headerLen, b.Iters)
		if err == nil {
			b.pings.AddLatency(name, [4]float64(ns))
		}
		return err
	}}
}

// line is what the command prints of what is measured here.
type line struct {
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	Sent float64 `json:"tx_msgs_per_s"`
	Lost float64 `json:"lost"`
}

func (b *bench) ping(name, link string, more ...string) harness.Variant {
	args := append([]string{"latency", "--link", link,
		"--size", strconv.Itoa(*size), "--iters", strconv.Itoa(b.Iters)}, more...)
	return harness.Variant{Name: name, Run: func(ctx context.Context) error {
		lines, err := harness.Lines[line](ctx, &b.Programs, args...)
		if err == nil {
			b.pings.Add(name, lines[0].P50, lines[0].P99)
		}
		return err
	}}
}

// cRate is a stream to a sink of the same kind of socket.
func (b *bench) cRate(name, kind, mode string, batch int) harness.Variant {
	iters := b.Iters * perPing
	return harness.Variant{Name: name, Run: func(ctx context.Context) error {
		came, ns, err := b.pair.RunC(ctx, b.Programs.C, kind+"sink", kind+mode, netpair.Interface,
			*size+headerLen, iters, batch)
		if err == nil {
			b.rates.Add(name, float64(iters)/ns[0]*1e9, came[0]/float64(iters))
		}
		return err
	}}
}

func (b *bench) rate(name, link string, more ...string) harness.Variant {
	iters := b.Iters * perPing
	args := append([]string{"rate", "--link", link,
		"--size", strconv.Itoa(*size), "--iters", strconv.Itoa(iters)}, more...)
	return harness.Variant{Name: name, Run: func(ctx context.Context) error {
		lines, err := harness.Lines[line](ctx, &b.Programs, args...)
		if err == nil {
			b.rates.Add(name, lines[0].Sent, 1-lines[0].Lost/float64(iters))
		}
		return err
	}}
}

func (b *bench) targets() []harness.Target {
	best := 0.0
	for _, name := range []string{cBatch, cTxRing, cSingle} {
		if r := b.rates.Find(name); r != nil {
			best = max(best, r.Median())
		}
	}
	t := []harness.Target{
		{What: "xdp, generic, at most 1.2 x AF_XDP in C", Limit: 1.2,
			Got: b.pings.Find(ours).Over(b.pings.Find(cXSK))},
		{What: "xdp, native, at most 1.2 x AF_XDP in C", Limit: 1.2,
			Got: b.pings.Find(oursNative).Over(b.pings.Find(cXSKNative))},
		{What: "xdp, generic, quicker than ring", Limit: 1,
			Got: b.pings.Find(ours).Over(b.pings.Find(oursRing))},
	}
	if best > 0 {
		t = append(t, harness.Target{What: "xdp, generic, sends at least 0.9 x AF_XDP in C", Limit: 0.9, AtLeast: true,
			Got: b.rates.Find(ours).Over(b.rates.Find(cXSKBatch))})
		t = append(t, harness.Target{What: "xdp sends at least 1.5 x the best AF_PACKET program in C",
			Got: b.rates.Find(ours).Median() / best, Limit: 1.5, AtLeast: true})
	}
	return t
}
