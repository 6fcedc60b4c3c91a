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

// verdicts go by the medians of ratios of neighbours. What the best results would say is beside:
// they were disturbed least.
func (t *table) verdicts(out io.Writer) {
	for _, g := range targets {
		if ratio, best := t.compare(g.section, g.of, g.to); ratio > 0 {
			verdict(out, g.what, ratio == g.limit || g.atLeast == (ratio > g.limit), fmt.Sprintf("%.2f, best results %.2f, limit %.2f", ratio, best, g.limit))
		}
	}
	batched, best := t.median(records, pushBatch), t.best(records, pushBatch, (*t)[records].best)
	verdict(out, "push in batches at least 5 million/s", batched >= batchedWant, fmt.Sprintf("%.2f, best result %.2f, limit %d", batched, best, batchedWant))
	half := t.half()
	got := fmt.Sprintf("%d, limit %d", half, halfWant)
	if half == 0 {
		got = fmt.Sprintf("not up to %d, limit %d", smallSizes[len(smallSizes)-1], halfWant)
	}
	verdict(out, "half of the peak at 512 bytes at most", half > 0 && half <= halfWant, got)
	if ratio, best := t.compare(oneWay, peak, tcpLong); ratio > 0 {
		fmt.Fprintf(out, "%-51s (%.2f, best results %.2f)\n", "for information: put of 64 KiB / C's TCP", ratio, best)
	}
}

// median returns the median of the row of that very name; 0 if it was left out.
func (t *table) median(section int, name string) float64 {
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
		if t.median(small, putOf(size, frameLen)) >= t.median(oneWay, peak)/2 {
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
