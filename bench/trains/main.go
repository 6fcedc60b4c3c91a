//go:build linux

// Command trains answers: what do frames gain that go through the kernel together, beside frames
// that a C program gives it one by one, beside its TCP, whose segments it passes on whole, and
// beside what a C program has of the same trains that does nothing for them? Over veth nobody
// computes TCP's checksums, so long puts stand beside it with theirs and without.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

func main() {
	b := harness.Bench{Name: "trains", Link: "a veth pair between two namespaces",
		Rounds: 5, Iters: 5000, MinIters: 100, Run: run}
	b.Main()
}

const (
	streamBytes = 128 << 20 // that each stream carries in a round
	putSize     = 64 << 10
	frameLen    = 1500
	frameBatch  = 64
	records     = 2_000_000
	messages    = 1_000_000
	messageLen  = 64
	headerLen   = 20   // rawlane's: the C program sends frames of the same length
	segmentLen  = 1448 // of the C program's trains: whole words, of which 44 are one
	segments    = 44
)

// Rows.
const (
	cFrames     = "C, full frames, sendmmsg of 64"
	cTCP        = "C, TCP with offloads, 64 KiB a send"
	cTCPPolled  = "C, TCP with offloads, polled"
	cTrains     = "C, UDP in trains of 44, neither written nor read"
	cSums       = "C, UDP in trains of 44, written, summed and read"
	cCut        = "C, UDP in trains of 44 that the kernel cuts"
	putPlain    = "rawlane, put of 64 KiB"
	putTrains   = "rawlane, put of 64 KiB, trains"
	putHeader   = "rawlane, put of 64 KiB, trains, --checksum header" // which leaves the data to the link
	putCut      = "rawlane, put of 64 KiB, trains that the kernel cuts"
	cMessages   = "C, sendmmsg of 64"
	cDatagrams  = "C, UDP in trains of 64, neither written nor read"
	ratePlain   = "rawlane, messages"
	rateTrains  = "rawlane, messages, trains"
	pushPlain   = "rawlane, push"
	pushTrains  = "rawlane, push, trains"
	pushesPlain = "rawlane, push, 64 a call"
	pushesTrain = "rawlane, push, 64 a call, trains"
	pingPlain   = "rawlane, message of 64 bytes"
	pingTrains  = "rawlane, message of 64 bytes, trains"
)

// bench is the benchmark, the programs that it compares, and its tables.
type bench struct {
	*harness.Bench
	pair, cutting *netpair.Pair // the second one's NICs leave segmentation to the kernel

	streams, messages, records, pings harness.Table
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	b := bench{Bench: hb}
	b.makeTables()
	if hb.Rows {
		return harness.RowsOf(b.variants()), nil
	}
	for _, p := range []**netpair.Pair{&b.pair, &b.cutting} {
		if *p, err = netpair.New(); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, (*p).Close()) }()
	}
	if err := b.cutting.WithoutUDPSegmentation(); err != nil {
		return r, err
	}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, b.variants()); err != nil {
		return r, err
	}
	r.Tables = []*harness.Table{&b.streams, &b.messages, &b.records, &b.pings}
	r.Targets = b.targets()
	return r, nil
}

func (b *bench) makeTables() {
	for _, t := range []struct {
		*harness.Table
		title, unit, section string
	}{
		{&b.streams, "One way, MB/s", "MB/s", "one_way"},
		{&b.messages, "Messages of 64 bytes that arrive, million/s", "million/s", "messages"},
		{&b.records, "Records of 8 bytes one way, million/s", "million/s", "records"},
		{&b.pings, "Half a round trip, us", "us", "half_round_trip"},
	} {
		*t.Table = harness.Table{
			Title: fmt.Sprintf("%-52s %9s %21s", t.title, "median", "range"),
			Text: func(r *harness.Row) string {
				return fmt.Sprintf("%-52s %9.2f %9.2f - %9.2f", r.Name, r.Median(), r.Min(), r.Max())
			},
			JSON: func(r *harness.Row) map[string]any {
				return map[string]any{"section": t.section, "name": r.Name, "unit": t.unit, "rounds": r.Rounds(),
					"median": r.Median(), "lowest": r.Min(), "highest": r.Max()}
			},
			Width: 10,
		}
	}
	b.streams.AddRatio("/ C frames", "ratio_to_c_frames", cFrames)
	b.streams.AddRatio("/ TCP", "ratio_to_tcp", cTCPPolled)
	b.streams.AddRatio("/ plain", "ratio_to_plain", putPlain)
	b.messages.AddRatio("/ C", "ratio_to_c", cMessages)
	b.records.AddRatio("/ plain", "ratio_to_plain", pushPlain)
	b.pings.AddRatio("/ plain", "ratio_to_plain", pingPlain)
}

// variants take turns in this order: those that are compared are neighbours.
func (b *bench) variants() (all []harness.Variant) {
	if b.Programs.C != "" {
		all = append(all,
			harness.Variant{Name: cFrames, Run: b.cStream(cFrames, "ring-sink", "ring-send", frameLen, frameBatch)},
			harness.Variant{Name: cTCP, Run: b.cStream(cTCP, "tcp-sink", "tcp-send", 1024, 64)},
			harness.Variant{Name: cTCPPolled, Run: b.cStream(cTCPPolled, "tcp-sink-polled", "tcp-send", 1024, 64)},
			harness.Variant{Name: cTrains, Run: b.cTrains(&b.streams, cTrains, b.pair, "", segmentLen, segments)},
			harness.Variant{Name: cSums, Run: b.cTrains(&b.streams, cSums, b.pair, "sum-", segmentLen, segments)},
			harness.Variant{Name: cCut, Run: b.cTrains(&b.streams, cCut, b.cutting, "", segmentLen, segments)},
			harness.Variant{Name: cMessages, Run: b.cMessages},
			harness.Variant{Name: cDatagrams,
				Run: b.cTrains(&b.messages, cDatagrams, b.pair, "", messageLen+headerLen, frameBatch)},
		)
	}
	put := func(add string) []string {
		return []string{"put", "--size=" + strconv.Itoa(putSize), "--bytes=" + strconv.Itoa(streamBytes), add}
	}
	const off, on = "--trains=false", "--trains"
	iters := "--iters=" + strconv.Itoa(b.Iters)
	fifo := []string{"fifo", "--size=8", "--bytes=" + strconv.Itoa(records*8), iters}
	rate := []string{"rate", "--size=" + strconv.Itoa(messageLen), "--iters=" + strconv.Itoa(messages),
		"--batch=" + strconv.Itoa(frameBatch)}
	ping := []string{"latency", "--size=" + strconv.Itoa(messageLen), iters}
	pushes := func(each, batch string) func(line) {
		return func(l line) {
			b.records.Add(each, l.Msgs/1e6)
			b.records.Add(batch, l.Batched/1e6)
		}
	}
	return append(all,
		b.command(putPlain, func(l line) { b.streams.Add(putPlain, l.MB) }, append(put(off), iters)...),
		b.command(putTrains, func(l line) { b.streams.Add(putTrains, l.MB) }, append(put(on), iters)...),
		b.command(putHeader, func(l line) { b.streams.Add(putHeader, l.MB) },
			append(put(on), iters, "--checksum=header")...),
		harness.Variant{Name: putCut, Run: func(ctx context.Context) error {
			return b.cut(ctx, append(put(on), iters))
		}},
		b.command(ratePlain, func(l line) { b.messages.Add(ratePlain, l.Msgs/1e6) }, append(rate, off)...),
		b.command(rateTrains, func(l line) { b.messages.Add(rateTrains, l.Msgs/1e6) }, append(rate, on)...),
		b.command(pushPlain, pushes(pushPlain, pushesPlain), append(fifo, off)...),
		b.command(pushTrains, pushes(pushTrains, pushesTrain), append(fifo, on)...),
		b.command(pingPlain, func(l line) { b.pings.Add(pingPlain, l.P50) }, append(ping, off)...),
		b.command(pingTrains, func(l line) { b.pings.Add(pingTrains, l.P50) }, append(ping, on)...),
	)
}

// line is what the command prints.
type line struct {
	P50     float64 `json:"p50_us"`
	MB      float64 `json:"mb_per_s"`
	Msgs    float64 `json:"msgs_per_s"`
	Batched float64 `json:"batched_msgs_per_s"`
}

// command is a run of the command, which makes namespaces of its own, joined by a veth pair.
func (b *bench) command(name string, add func(line), args ...string) harness.Variant {
	rows := []string{name}
	switch name {
	case pushPlain:
		rows = append(rows, pushesPlain)
	case pushTrains:
		rows = append(rows, pushesTrain)
	}
	return harness.Variant{Name: name, Rows: rows, Run: func(ctx context.Context) error {
		got, err := harness.Line[line](ctx, &b.Programs, onRing(args)...)
		if err == nil {
			add(got)
		}
		return err
	}}
}

// onRing are the arguments of a verb for links of kind ring.
func onRing(args []string) []string {
	return append([]string{args[0], "--link=ring"}, args[1:]...)
}

// cut is a run of the command on the NICs that leave segmentation to the kernel.
func (b *bench) cut(ctx context.Context, args []string) error {
	lines, err := netpair.Lines[line](ctx, b.cutting, b.Programs.Rawlane, onRing(args)...)
	if err == nil {
		b.streams.Add(putCut, lines[0].MB)
	}
	return err
}

// cStream is a stream by the C program: of frames, those that arrive, or TCP, whose records are of
// size bytes.
func (b *bench) cStream(name, sink, source string, size, batch int) func(context.Context) error {
	return func(ctx context.Context) error {
		where := b.pair.IP(1)
		if source == "ring-send" {
			where = netpair.Interface
		}
		count := streamBytes / size
		arrived, ns, err := b.pair.RunC(ctx, b.Programs.C, sink, source, where, size, count, batch)
		if err == nil {
			came := float64(count)
			if len(arrived) > 0 { // frames: of TCP all do
				came = arrived[0]
			}
			b.streams.Add(name, came*float64(size)/ns[0]*1e3)
		}
		return err
	}
}

// cTrains is a stream of trains by the C program: MB/s, or million datagrams a second.
func (b *bench) cTrains(
	to *harness.Table, name string, pair *netpair.Pair, way string, size, train int,
) func(context.Context) error {
	return func(ctx context.Context) error {
		count, each := streamBytes/size, 1.0
		if to == &b.messages {
			count, each = messages, float64(size)
		}
		rate, err := pair.TrainsOfC(ctx, b.Programs.C, way+"gso-sink", way+"gso-send", size, count, train)
		if err == nil {
			to.Add(name, rate/each/1e6)
		}
		return err
	}
}

// cMessages counts the messages that arrive of those that the C program sends.
func (b *bench) cMessages(ctx context.Context) error {
	came, ns, err := b.pair.RunC(ctx, b.Programs.C, "ring-sink", "ring-send", netpair.Interface,
		messageLen+headerLen, messages, frameBatch)
	if err == nil {
		b.messages.Add(cMessages, came[0]/ns[0]*1e3)
	}
	return err
}

func (b *bench) targets() []harness.Target {
	over := func(t *harness.Table, what, of, to string, limit float64) harness.Target {
		return harness.Target{What: what, Got: t.Find(of).Over(t.Find(to)), Limit: limit, AtLeast: true}
	}
	tcp := cTCP
	if b.streams.Find(cTCPPolled).Median() > b.streams.Find(cTCP).Median() {
		tcp = cTCPPolled
	}
	pings := over(&b.pings, "a message at most 1.03 x one without trains", pingTrains, pingPlain, 1.03)
	pings.AtLeast = false
	return []harness.Target{
		over(&b.streams, "put of 64 KiB at least 4 x C's frames", putTrains, cFrames, 4),
		over(&b.streams, "put of 64 KiB with as few checksums at least 1.0 x C's TCP with offloads", putHeader, tcp, 1),
		over(&b.streams, "cut by the kernel at least 1.2 x without trains", putCut, putPlain, 1.2),
		{What: "messages of 64 bytes at least 5 million/s", Limit: 5, AtLeast: true,
			Got: b.messages.Find(rateTrains).Median()},
		{What: "records of 8 bytes at least 20 million/s", AtLeast: true, Limit: 20,
			Got: max(b.records.Find(pushTrains).Median(), b.records.Find(pushesTrain).Median())},
		pings,
	}
}
