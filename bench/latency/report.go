//go:build linux

package main

import (
	"fmt"
	"io"

	"github.com/rawlane/rawlane/bench/harness"
)

// line is the result of a variant.
type line struct {
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

type report []line

func newReport(all []*variant, size int) (r report) {
	for _, v := range all {
		if len(v.Samples) == 0 {
			return nil
		}
		m, low, high := harness.MedianLatency(v)
		r = append(r, line{Name: v.Name, Size: size, P50: m.P50 / 1e3, P99: m.P99 / 1e3,
			Rounds: len(v.Samples), LowP50: low / 1e3, HighP50: high / 1e3})
	}
	ring, udp := r.p50(cRing), r.p50(cUDP)
	for i := range r {
		if ring > 0 {
			r[i].ToRing, r[i].ToUDP = r[i].P50/ring, r[i].P50/udp
		}
	}
	return r
}

// p50 returns the median of a variant; 0 if it was left out.
func (r report) p50(name string) float64 {
	for _, l := range r {
		if l.Name == name {
			return l.P50
		}
	}
	return 0
}

// JSON implements harness.Report.
func (r report) JSON() (lines []any) {
	for _, l := range r {
		lines = append(lines, l)
	}
	return lines
}

// Text implements harness.Report.
func (r report) Text(out io.Writer) {
	fmt.Fprintf(out, "Half a round trip, %d bytes, us; median of %d rounds\n%-32s %8s %8s %18s %8s %8s\n",
		r[0].Size, r[0].Rounds, "", "p50", "p99", "p50 of the rounds", "/ C ring", "/ C UDP")
	for _, l := range r {
		fmt.Fprintf(out, "%-32s %8.2f %8.2f %8.2f - %7.2f %8.2f %8.2f\n",
			l.Name, l.P50, l.P99, l.LowP50, l.HighP50, l.ToRing, l.ToUDP)
	}
	fmt.Fprintln(out)
	harness.PrintTargets(out, r.targets()...)
}

// targets are the ratios of the ring to others that were not left out.
func (r report) targets() (all []harness.Target) {
	for _, t := range []struct {
		what, to string
		limit    float64
	}{
		{"ring at most 1.5 x the bare ring in C", cRing, 1.5},
		{"ring at most 0.75 x polled UDP in C", cUDP, 0.75},
		{"ring 12 x faster than Go's UDP", "Go, net package, UDP", 1. / 12},
		{"ring 12 x faster than Go's TCP", "Go, net package, TCP", 1. / 12},
	} {
		if to := r.p50(t.to); to > 0 {
			all = append(all, harness.Target{What: t.what, Got: r.p50("rawlane, ring") / to, Limit: t.limit})
		}
	}
	return all
}
