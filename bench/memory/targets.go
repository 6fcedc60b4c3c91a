//go:build linux

package main

import (
	"fmt"
	"io"
)

// peak is the row whose half small writes have to reach.
const peak = "rawlane, put, 65536 bytes"

// targets are what this project wants to reach: of at most, or at least, limit times to.
var targets = []struct {
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
}

const (
	batchedWant = 5   // million/s
	halfWant    = 512 // bytes
)

func (t *table) verdicts(out io.Writer) {
	for _, g := range targets {
		if to := t.best(g.section, g.to); to > 0 {
			ratio := t.row(g.section, g.of) / to
			met := ratio >= g.limit
			if !g.atLeast {
				met = ratio <= g.limit
			}
			verdict(out, g.what, met, fmt.Sprintf("%.2f, limit %.2f", ratio, g.limit))
		}
	}
	batched := t.row(records, pushBatch)
	verdict(out, "push in batches at least 5 million/s", batched >= batchedWant, fmt.Sprintf("%.2f, limit %d", batched, batchedWant))
	half := t.half()
	met, got := half > 0 && half <= halfWant, fmt.Sprintf("%d, limit %d", half, halfWant)
	if half == 0 {
		got = fmt.Sprintf("not up to %d, limit %d", smallSizes[len(smallSizes)-1], halfWant)
	}
	verdict(out, "half of the peak at 512 bytes at most", met, got)
	if tcp := t.best(oneWay, tcpLong); tcp > 0 {
		fmt.Fprintf(out, "%-42s %-8s (%.2f)\n", "for information: put of 64 KiB / C's TCP", "", t.row(oneWay, peak)/tcp)
	}
}

// row returns the median of the row of that very name.
func (t *table) row(section int, name string) float64 {
	for _, r := range (*t)[section].rows {
		if r.name == name {
			return r.median()
		}
	}
	return 0
}

// half returns the smallest size that reaches half of the peak, or 0.
func (t *table) half() int {
	for _, size := range smallSizes {
		if t.row(small, putOf(size, frameLen)) >= t.row(oneWay, peak)/2 {
			return size
		}
	}
	return 0
}

func verdict(out io.Writer, what string, met bool, got string) {
	word := "met"
	if !met {
		word = "NOT met"
	}
	fmt.Fprintf(out, "%-42s %-8s (%s)\n", what, word, got)
}
