//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/campaign/internal/hostile"
)

// hostileUnit is layer L11: frames at line rate from a third station.
func hostileUnit(name string, keys bool) *unit {
	u := &unit{
		layer: "L11", name: name, counts: "hostile frames", namespaces: true,
		goals: [3]uint64{100_000, 10_000_000, 100_000_000}, pieces: [2]uint64{125_000, 2_000_000},
	}
	if !keys {
		u.goals[commit] = 0
	}
	u.work = func(ctx context.Context, w *workshop, cursor, size uint64) (result, error) {
		cfg := hostile.Config{Keys: keys, Frames: size, Seed: cursor + 1}
		o, err := hostile.Run(ctx, cfg)
		if err != nil {
			return result{}, fmt.Errorf("attack: %w", err)
		}
		if slower := ratio(o.Attacked.Median, o.Elsewhere.Median); w.profile != commit && slower > hostile.Slower {
			o.Wrong = append(o.Wrong, fmt.Sprintf("half a round trip takes %v under attack, %.2f times as long as "+
				"while the frames go elsewhere, want %v at most", o.Attacked.Median, slower, hostile.Slower))
		}
		return attacked(&o, u.key(), w.profile, cursor), nil
	}
	return u
}

// attacked are an attack's figures.
func attacked(o *hostile.Outcome, key string, p profile, cursor uint64) result {
	r := result{figures: map[string]uint64{
		"hostile frames": o.Judged, "hostile frames sent": o.Sent, "hostile frames accepted, " + key: o.Accepted,
		"hostile frames per second, max": uint64(o.Rate), "genuine messages under attack": o.Genuine,
		"questions without an answer":                  o.Lost,
		"percent of the median time, attacked, max":    percent(o.Attacked.Median, o.Elsewhere.Median),
		"percent of the mean time, attacked, max":      percent(o.Attacked.Mean, o.Elsewhere.Mean),
		"percent of the quiet median, attacked, max":   percent(o.Attacked.Median, o.Quiet.Median),
		"percent of the quiet mean, attacked, max":     percent(o.Attacked.Mean, o.Quiet.Mean),
		"bytes by which an attack grows the heap, max": uint64(max(o.HeapGrown, 0)),
	}}
	for name, n := range o.Drops {
		if n > 0 {
			r.figures["hostile: "+name] = n
		}
	}
	if len(o.Wrong) > 0 {
		r.violation = &violation{
			Repeat: fmt.Sprintf("go run ./bench/campaign --%v --layer %q --only %d", p, key, cursor),
			Output: strings.Join(o.Wrong, "\n"),
		}
	}
	return r
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

func percent(a, b time.Duration) uint64 { return uint64(100 * ratio(a, b)) }
