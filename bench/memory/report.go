//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
)

// Rows. Those of TCP in C come twice, with a blocking and with a polling receiver.
const (
	plain4    = "rawlane, message, 4 bytes"
	put4      = "rawlane, put, 4 bytes"
	push64    = "rawlane, push, 64 bytes"
	tcp64     = "C, TCP sockets, polled, 64 bytes"
	pushEach  = "rawlane, push, one call each"
	pushBatch = "rawlane, push, 64 a call"
	tcpEach   = "C, TCP, one send each"
	tcpBatch  = "C, TCP, 64 a send"
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

// section is rows that are compared with the best of those whose names begin like base.
type section struct {
	harness.Rows
	title, unit, key  string
	base, head, ratio string // ratio ends the JSON key
	less              bool   // is better
}

// Indexes of a table's sections.
const (
	latency = iota
	records
	oneWay
	bothWays
	small
)

type table []*section

func newTable() *table {
	return &table{
		latency: {title: "Half a round trip, us", unit: "us", key: "half_round_trip",
			base: tcp64, head: "/ C TCP", ratio: "c_tcp", less: true},
		records: {title: "Records of 8 bytes one way, million/s", unit: "million/s", key: "records",
			base: tcpEach, head: "/ one send", ratio: "c_tcp_one_send"},
		oneWay: {title: "One way, MB/s", unit: "MB/s", key: "one_way",
			base: cFrames, head: "/ C frames", ratio: "c_frames"},
		bothWays: {title: "Both ways at once, MB/s each way", unit: "MB/s", key: "both_ways",
			base: cFrames, head: "/ C frames", ratio: "c_frames"},
		small: {title: "Small writes one way, MB/s", unit: "MB/s", key: "small",
			head: "/ 64 KiB", ratio: "put_64_kib"},
	}
}

func (t *table) add(section int, name string, value float64) { (*t)[section].Add(name, value) }

// bestRound returns the best result of a row.
func (s *section) bestRound(r *harness.Row) float64 {
	if s.less {
		return r.Min()
	}
	return r.Max()
}

// best returns the row with the best value among those whose names begin so; nil without any.
func (s *section) best(prefix string, of func(*harness.Row) float64) (best *harness.Row) {
	for _, r := range s.Rows {
		if strings.HasPrefix(r.Name, prefix) && (best == nil || s.less == (of(r) < of(best))) {
			best = r
		}
	}
	return best
}

// compare returns two ratios of the best rows of two names; 0 without one of them. The first is the
// median of the ratios of results that were measured one after the other, or else the ratio of the
// medians. The second is the ratio of the best results.
func (s *section) compare(of, to string) (neighbours, best float64) {
	a, b := s.best(of, (*harness.Row).Median), s.best(to, (*harness.Row).Median)
	if a == nil || b == nil {
		return 0, 0
	}
	neighbours = a.Over(b)
	if len(a.Values) == len(b.Values) {
		var ratios harness.Row
		for i := range a.Values {
			ratios.Values = append(ratios.Values, a.Values[i]/b.Values[i])
		}
		neighbours = ratios.Median()
	}
	return neighbours, s.bestRound(s.best(of, s.bestRound)) / s.bestRound(s.best(to, s.bestRound))
}

// base returns the number that a section's rows are compared with; 0 if its row was left out.
func (t *table) base(section int) float64 {
	if section == small {
		return (*t)[oneWay].Find(peak).Median()
	}
	s := (*t)[section]
	return s.best(s.base, (*harness.Row).Median).Median()
}

// JSON implements harness.Report.
func (t *table) JSON() (lines []any) {
	for i, s := range *t {
		for _, r := range s.Rows {
			line := map[string]any{"section": s.key, "name": r.Name, "unit": s.unit, "rounds": len(r.Values),
				"median": r.Median(), "lowest": r.Min(), "highest": r.Max()}
			if base := t.base(i); base > 0 {
				line["ratio_to_"+s.ratio] = r.Median() / base
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// Text implements harness.Report.
func (t *table) Text(out io.Writer) {
	for i, s := range *t {
		fmt.Fprintf(out, "%-38s %9s %21s", s.title, "median", "range")
		base := t.base(i)
		if base > 0 {
			fmt.Fprintf(out, " %10s", s.head)
		}
		fmt.Fprintln(out)
		for _, r := range s.Rows {
			fmt.Fprintf(out, "%-38s %9.2f %9.2f - %9.2f", r.Name, r.Median(), r.Min(), r.Max())
			if base > 0 {
				fmt.Fprintf(out, " %10.2f", r.Median()/base)
			}
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out)
	}
	harness.PrintTargets(out, t.targets()...)
	if ratio, best := (*t)[oneWay].compare(peak, tcpLong); ratio > 0 {
		fmt.Fprintf(out, "for information: put of 64 KiB / C's TCP %.2f, best results %.2f\n", ratio, best)
	}
}

// targets goes by the ratios of neighbours. The best results, beside, were disturbed least.
func (t *table) targets() (all []harness.Target) {
	for _, g := range []struct {
		what    string
		section int
		of, to  string
		atLeast bool
		limit   float64
	}{
		{"put of 4 bytes at most 1.6 x a message", latency, put4, plain4, false, 1.6},
		{"push of 64 bytes faster than C's TCP", latency, push64, tcp64, false, 1},
		{"push at least 1.5 x C's TCP, one each", records, pushEach, tcpEach, true, 1.5},
		{"put of 64 KiB at least 0.9 x C's frames", oneWay, peak, cFrames, true, 0.9},
		{"both ways at least 0.85 x C's frames", bothWays, peak, cFrames, true, 0.85},
	} {
		if ratio, best := (*t)[g.section].compare(g.of, g.to); ratio > 0 {
			all = append(all, harness.Target{What: g.what, Got: ratio, Limit: g.limit, AtLeast: g.atLeast,
				Note: fmt.Sprintf("best results %.2f, ", best)})
		}
	}
	batched := (*t)[records].Find(pushBatch)
	return append(all,
		harness.Target{What: "push in batches at least 5 million/s", Got: batched.Median(), Limit: 5,
			AtLeast: true, Note: fmt.Sprintf("best result %.2f, ", batched.Max())},
		harness.Target{What: "half of the peak at 512 bytes at most", Got: t.half(), Limit: 512})
}

// half returns the smallest size that reaches half of the peak; infinity without one.
func (t *table) half() float64 {
	for _, size := range smallSizes {
		if (*t)[small].Find(putOf(size, frameLen)).Median() >= (*t)[oneWay].Find(peak).Median()/2 {
			return float64(size)
		}
	}
	return math.Inf(1)
}
