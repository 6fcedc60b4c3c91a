//go:build linux

package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
)

// Rows. Those of TCP in C come twice, with a blocking and with a polling receiver.
const (
	plain4    = "rawlane, message, 4 bytes"
	fetchAdd  = "rawlane, fetch-and-add, half of it"
	put4      = "rawlane, put, 4 bytes"
	push64    = "rawlane, push, 64 bytes"
	tcp64     = "C, TCP sockets, polled, 64 bytes"
	pushEach  = "rawlane, push, one call each"
	pushBatch = "rawlane, push, 64 a call"
	tcpEach   = "C, TCP, one send each"
	tcpNagle  = "C, TCP, one send each, Nagle"
	tcpBatch  = "C, TCP, 64 a send"
	tcpWritev = "C, TCP, 64 a writev"
	frameEach = "C, full frames, one send each"
	frameMany = "C, full frames, sendmmsg of 64"
	cameEach  = "C, arrived of one send each"
	cameMany  = "C, arrived of sendmmsg of 64"
	tcpLong   = "C, TCP, 64 KiB a send"

	cFrames = "C, full frames"            // the beginning of two names
	peak    = "rawlane, put, 65536 bytes" // small writes should reach half of it
)

func putOf(size, mtu int) string {
	if mtu == largeMTU {
		return fmt.Sprintf("rawlane, put, MTU %d, %d bytes", mtu, size)
	}
	return fmt.Sprintf("rawlane, put, %d bytes", size)
}

// table is rows that are compared with the best of those whose names begin like base.
type table struct {
	harness.Table
	less bool // is better
}

func (b *bench) makeTables() {
	b.latency = newTable("Half a round trip, us", "us", "half_round_trip")
	b.latency.less = true
	b.latency.compare("/ C TCP", "c_tcp", tcp64)
	b.records = newTable("Records of 8 bytes one way, million/s", "million/s", "records")
	b.records.compare("/ one send", "c_tcp_one_send", tcpEach+", ")
	b.records.compare("/ gathered", "c_tcp_gathered", "C, TCP, ")
	b.oneWay = newTable("One way, MB/s", "MB/s", "one_way")
	b.oneWay.compare("/ C frames", "c_frames", cFrames)
	b.bothWays = newTable("Both ways at once, MB/s each way", "MB/s", "both_ways")
	b.bothWays.compare("/ C frames", "c_frames", cFrames)
	b.small = newTable("Small writes one way, MB/s", "MB/s", "small")
	b.small.Ratios = []harness.Ratio{
		{Head: "/ 64 KiB", Key: "ratio_to_put_64_kib", To: func() *harness.Row { return b.oneWay.Find(peak) }},
	}
}

func newTable(title, unit, section string) *table {
	return &table{Table: harness.Table{
		Title: fmt.Sprintf("%-38s %9s %21s", title, "median", "range"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-38s %9.2f %9.2f - %9.2f", r.Name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"section": section, "name": r.Name, "unit": unit, "rounds": r.Rounds(),
				"median": r.Median(), "lowest": r.Min(), "highest": r.Max()}
		},
		Width: 10,
	}}
}

// compare adds a column of ratios to the best of the rows whose names begin so.
func (t *table) compare(head, key, prefix string) {
	to := func() *harness.Row { return t.best(prefix, (*harness.Row).Median) }
	t.Ratios = append(t.Ratios, harness.Ratio{Head: head, Key: "ratio_to_" + key, To: to})
}

// bestRound returns the best result of a row.
func (t *table) bestRound(r *harness.Row) float64 {
	if t.less {
		return r.Min()
	}
	return r.Max()
}

// best returns the row with the best value among those whose names begin so; nil without any.
func (t *table) best(prefix string, of func(*harness.Row) float64) (best *harness.Row) {
	for _, r := range t.Rows {
		if strings.HasPrefix(r.Name, prefix) && (best == nil || t.less == (of(r) < of(best))) {
			best = r
		}
	}
	return best
}

// ratios returns two ratios of the best rows of two names; NaN without one of them. The first is
// the median of the ratios of results that were measured one after the other, or else the ratio of
// the medians. The second is the ratio of the best results.
func (t *table) ratios(of, to string) (neighbours, best float64) {
	a, b := t.best(of, (*harness.Row).Median), t.best(to, (*harness.Row).Median)
	if a == nil || b == nil {
		return math.NaN(), math.NaN()
	}
	neighbours = a.Over(b)
	if len(a.Values) == len(b.Values) {
		var ratios harness.Row
		for i := range a.Values {
			if a.Counts(i) && b.Counts(i) {
				ratios.Values = append(ratios.Values, harness.Over(a.Values[i], b.Values[i]))
			}
		}
		if len(ratios.Values) > 0 {
			neighbours = ratios.Median()
		}
	}
	return neighbours, harness.Over(t.bestRound(t.best(of, t.bestRound)), t.bestRound(t.best(to, t.bestRound)))
}

func (b *bench) report() (r harness.Report) {
	for _, t := range []*table{b.latency, b.records, b.oneWay, b.bothWays, b.small} {
		r.Tables = append(r.Tables, &t.Table)
	}
	r.Targets = b.targets()
	if ratio, best := b.oneWay.ratios(peak, tcpLong); ratio > 0 {
		r.Note = fmt.Sprintf("for information: put of 64 KiB / C's TCP %.2f, best results %.2f\n", ratio, best)
	}
	return r
}

// targets goes by the ratios of neighbours. The best results, beside, were disturbed least.
func (b *bench) targets() (all []harness.Target) {
	for _, g := range []struct {
		what    string
		table   *table
		of, to  string
		atLeast bool
		limit   float64
	}{
		{"put of 4 bytes at most 1.6 x a message", b.latency, put4, plain4, false, 1.6},
		{"fetch-and-add at most 1.6 x a message there and back", b.latency, fetchAdd, plain4, false, 1.6},
		{"push of 64 bytes faster than C's TCP", b.latency, push64, tcp64, false, 1},
		{"push at least 1.5 x C's TCP, one send each, Nagle or not", b.records, pushEach, tcpEach, true, 1.5},
		{"push at least 0.5 x C's TCP, gathered at its best", b.records, pushEach, "C, TCP, ", true, 0.5},
		{"push in batches at least 0.5 x C's TCP, gathered", b.records, pushBatch, "C, TCP, 64", true, 0.5},
		{"put of 64 KiB at least 0.92 x C's frames", b.oneWay, peak, cFrames, true, 0.92},
		{"both ways at least 0.88 x C's frames", b.bothWays, peak, cFrames, true, 0.88},
	} {
		ratio, best := g.table.ratios(g.of, g.to)
		all = append(all, harness.Target{What: g.what, Got: ratio, Limit: g.limit, AtLeast: g.atLeast,
			Note: fmt.Sprintf("best results %.2f, ", best)})
	}
	batched := b.records.Find(pushBatch)
	return append(all,
		harness.Target{What: "push in batches at least 5 million/s", Got: batched.Median(), Limit: 5,
			AtLeast: true, Note: fmt.Sprintf("best result %.2f, ", batched.Max())},
		harness.Target{What: "half of the peak at 512 bytes at most", Got: b.half(), Limit: 512})
}

// half returns the smallest size that reaches half of the peak; infinity without one.
func (b *bench) half() float64 {
	for _, size := range smallSizes {
		if b.small.Find(putOf(size, frameLen)).Over(b.oneWay.Find(peak)) >= 0.5 {
			return float64(size)
		}
	}
	return math.Inf(1)
}
