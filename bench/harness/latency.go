//go:build linux

package harness

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is the times of one round, in ns.
type Latency struct{ Min, P50, P99, Max float64 }

// Measure prints how long f takes, as ParseLatency reads it. A tenth of the calls warm up.
func Measure(iters int, f func(i int) error) error {
	h := NewHistogram()
	for i := range iters + iters/10 {
		start := time.Now()
		if err := f(i); err != nil {
			return err
		}
		if took := time.Since(start); i >= iters/10 {
			if err := h.Record(took); err != nil {
				return err
			}
		}
	}
	return h.Print()
}

// Histogram collects times.
type Histogram struct{ h *hdrhistogram.Histogram }

// NewHistogram makes an empty histogram of times up to 10 s.
func NewHistogram() *Histogram {
	return &Histogram{hdrhistogram.New(1, int64(10*time.Second), 3)}
}

// Record adds a time.
func (h *Histogram) Record(d time.Duration) error { return h.h.RecordValue(d.Nanoseconds()) }

// Print prints the times as ParseLatency reads them.
func (h *Histogram) Print() error {
	_, err := fmt.Println(h.h.Min(), h.h.ValueAtQuantile(50), h.h.ValueAtQuantile(99), h.h.Max())
	return err
}

// ParseLatency reads the output of a program: minimum, median, 99th percentile, maximum.
func ParseLatency(out string, err error) (l Latency, _ error) {
	if err != nil {
		return l, err
	}
	if n, err := fmt.Sscan(out, &l.Min, &l.P50, &l.P99, &l.Max); n != 4 {
		return l, fmt.Errorf("unexpected output %q: %w", out, err)
	}
	return l, nil
}

// MedianLatency returns the round with the median p50, and the lowest and the highest p50.
func MedianLatency(v *Variant[Latency]) (median Latency, low, high float64) {
	median = v.Median(func(l Latency) float64 { return l.P50 })
	return median, v.Samples[0].P50, v.Samples[len(v.Samples)-1].P50
}
