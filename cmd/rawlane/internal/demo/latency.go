package demo

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/mcd"
)

const (
	demoRounds = 1000
	demoWarmup = 100
	// echoTimeout is the time after which an echo counts as lost.
	echoTimeout = 100 * time.Millisecond
)

// measure prints half the round trip between node 0 and the echo of node 1.
func (t *tour) measure(ctx context.Context) error {
	t.say("\nHalf a round trip, node 0 <-> node 1, both in this process (us):")
	t.say("%-8s %8s %8s %8s %8s %6s", "# Size", "min", "p50", "p99", "max", "lost")
	for _, size := range []int{4, 64, 1024, 1400} {
		h := hdrhistogram.New(1, int64(echoTimeout), 3)
		lost := 0
		for i := range demoWarmup + demoRounds {
			half, err := t.round(ctx, size)
			switch {
			case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
				lost++
			case err != nil:
				return err
			case i >= demoWarmup:
				_ = h.RecordValue(int64(half)) // below echoTimeout, and so in range
			}
		}
		us := func(ns int64) float64 { return float64(ns) / 1e3 }
		t.say("%-8d %8.2f %8.2f %8.2f %8.2f %6d", size, us(h.Min()), us(h.ValueAtPercentile(50)),
			us(h.ValueAtPercentile(99)), us(h.Max()), lost)
	}
	return nil
}

func (t *tour) round(ctx context.Context, size int) (half time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, echoTimeout)
	defer cancel()
	b := make([]byte, size)
	start := time.Now()
	if err := t.ports[0].Send(ctx, mcd.Addr{Node: 1, Port: echoPort}, b); err != nil {
		return 0, err
	}
	if _, _, err := t.ports[0].Recv(ctx, b); err != nil {
		return 0, err
	}
	return time.Since(start) / 2, nil
}
