//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Rows. Those of C's TCP come twice, with a receiver that blocks and one that polls.
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
)

func putOf(size, mtu int) string {
	if mtu == largeMTU {
		return fmt.Sprintf("rawlane, put, MTU %d, %d bytes", mtu, size)
	}
	return fmt.Sprintf("rawlane, put, %d bytes", size)
}

// row is a contestant's result of each round.
type row struct {
	name   string
	values []float64
}

// section is rows that are compared with the best of those whose names begin like one.
type section struct {
	title, unit, key  string
	base, head, ratio string // ratio: the JSON key's end
	less              bool   // is better
	rows              []*row
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
		latency:  {title: "Half a round trip, us", unit: "us", key: "half_round_trip", base: tcp64, head: "/ C TCP", ratio: "c_tcp", less: true},
		records:  {title: "Records of 8 bytes one way, million/s", unit: "million/s", key: "records", base: tcpEach, head: "/ one send", ratio: "c_tcp_one_send"},
		oneWay:   {title: "One way, MB/s", unit: "MB/s", key: "one_way", base: cFrames, head: "/ C frames", ratio: "c_frames"},
		bothWays: {title: "Both ways at once, MB/s each way", unit: "MB/s", key: "both_ways", base: cFrames, head: "/ C frames", ratio: "c_frames"},
		small:    {title: "Small writes one way, MB/s", unit: "MB/s", key: "small", head: "/ 64 KiB", ratio: "put_64_kib"},
	}
}

// cFrames begins the names of those rows.
const cFrames = "C, full frames"

// add takes a round's result.
func (t *table) add(section int, name string, value float64) {
	s := (*t)[section]
	i := slices.IndexFunc(s.rows, func(r *row) bool { return r.name == name })
	if i < 0 {
		i = len(s.rows)
		s.rows = append(s.rows, &row{name: name})
	}
	s.rows[i].values = append(s.rows[i].values, value)
}

func (r *row) median() float64 {
	v := slices.Sorted(slices.Values(r.values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// best returns the row's best round.
func (s *section) best(r *row) float64 {
	if s.less {
		return slices.Min(r.values)
	}
	return slices.Max(r.values)
}

// champion returns the row that comes to the best among those whose names begin so; nil if they
// were left out.
func (t *table) champion(section int, prefix string, of func(*row) float64) (best *row) {
	s := (*t)[section]
	for _, r := range s.rows {
		if strings.HasPrefix(r.name, prefix) && (best == nil || s.less == (of(r) < of(best))) {
			best = r
		}
	}
	return best
}

// best returns what the champion comes to; 0 if there is none.
func (t *table) best(section int, prefix string, of func(*row) float64) float64 {
	if r := t.champion(section, prefix, of); r != nil {
		return of(r)
	}
	return 0
}

// compare returns the median of the ratios of two names' results that were measured one after the
// other, or the ratio of their medians if there are not as many of one as of the other; and the
// ratio of their best ones. 0 if either was left out.
func (t *table) compare(section int, of, to string) (neighbours, best float64) {
	a, b := t.champion(section, of, (*row).median), t.champion(section, to, (*row).median)
	if a == nil || b == nil {
		return 0, 0
	}
	neighbours = a.median() / b.median()
	if len(a.values) == len(b.values) {
		ratios := row{values: make([]float64, len(a.values))}
		for i := range ratios.values {
			ratios.values[i] = a.values[i] / b.values[i]
		}
		neighbours = ratios.median()
	}
	result := (*t)[section].best
	return neighbours, t.best(section, of, result) / t.best(section, to, result)
}

// base is what a section's rows are compared with; 0 if it was left out.
func (t *table) base(section int) float64 {
	if section == small {
		return t.median(oneWay, peak)
	}
	return t.best(section, (*t)[section].base, (*row).median)
}

func (t *table) print(out io.Writer) {
	for i, s := range *t {
		fmt.Fprintf(out, "%-38s %9s %21s", s.title, "median", "range")
		base := t.base(i)
		if base > 0 {
			fmt.Fprintf(out, " %10s", s.head)
		}
		fmt.Fprintln(out)
		for _, r := range s.rows {
			fmt.Fprintf(out, "%-38s %9.2f %9.2f - %9.2f", r.name, r.median(), slices.Min(r.values), slices.Max(r.values))
			if base > 0 {
				fmt.Fprintf(out, " %10.2f", r.median()/base)
			}
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out)
	}
}

func (t *table) printJSON(out io.Writer) error {
	lines := json.NewEncoder(out)
	for i, s := range *t {
		for _, r := range s.rows {
			line := map[string]any{"section": s.key, "name": r.name, "unit": s.unit, "rounds": len(r.values),
				"median": r.median(), "lowest": slices.Min(r.values), "highest": slices.Max(r.values)}
			if base := t.base(i); base > 0 {
				line["ratio_to_"+s.ratio] = r.median() / base
			}
			if err := lines.Encode(line); err != nil {
				return err
			}
		}
	}
	return nil
}
