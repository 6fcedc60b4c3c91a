//go:build linux

package harness

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Measure prints how long f takes, in ns: minimum, median, 99th percentile, maximum. A tenth of the
// calls warm up.
func Measure(iters int, f func(i int) error) error {
	h := hdrhistogram.New(1, int64(10*time.Second), 3)
	for i := range iters + iters/10 {
		start := time.Now()
		if err := f(i); err != nil {
			return err
		}
		if took := time.Since(start); i >= iters/10 {
			if err := h.RecordValue(took.Nanoseconds()); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Println(h.Min(), h.ValueAtQuantile(50), h.ValueAtQuantile(99), h.Max())
	return err
}

// AddLatency adds what a program like Measure has printed: the median in us, and beside it the 99th
// percentile.
func (t *Rows) AddLatency(name string, ns [4]float64) { t.Add(name, ns[1]/1e3, ns[2]/1e3) }

// NewLatencyTable makes a table of rows that AddLatency has added to, of messages of size bytes.
func NewLatencyTable(title string, size, rounds int) *Table {
	return &Table{
		Title: fmt.Sprintf("%s of %d bytes, us; median of %d rounds\n%-32s %8s %8s %18s",
			title, size, rounds, "", "p50", "p99", "p50 of the rounds"),
		Text: func(r *Row) string {
			return fmt.Sprintf("%-32s %8.2f %8.2f %8.2f - %7.2f", r.Name, r.Median(), r.Second(), r.Min(), r.Max())
		},
		JSON: func(r *Row) map[string]any {
			line := LatencyJSON(r)
			line["size_bytes"] = size
			return line
		},
		Width: 8,
	}
}

// LatencyJSON is Table.JSON of rows that AddLatency has added to.
func LatencyJSON(r *Row) map[string]any {
	return map[string]any{"name": r.Name, "p50_us": r.Median(), "p99_us": r.Second(), "rounds": r.Rounds(),
		"lowest_p50_us": r.Min(), "highest_p50_us": r.Max()}
}
