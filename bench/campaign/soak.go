//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/campaign/internal/soak"
	"github.com/rawlane/rawlane/transport/fault"
)

const (
	longestSoak  = time.Hour        // of one piece; --hours makes it shorter, or has more of them
	shortestSoak = 30 * time.Minute // of which the slope of memory says something
	slopeAllowed = 1 << 20          // bytes an hour
	// The pools of four nodes' streams keep 4 MiB each, which they have after some hours: a slope
	// of so many bytes is less than one for each connection of the hour.
	slopeOfPools = 16 << 20
	passing      = 3 // goroutines that may be there for a moment
)

// clients of the soak of connections, and as many connections.
const clients = 1000

// soakRun is a soak: it runs for a time.
type soakRun func(ctx context.Context, length time.Duration) (soak.Outcome, error)

// soakUnits look for what grows: --layer soak --hours H.
func soakUnits() []*unit {
	connections := func(ctx context.Context, length time.Duration) (soak.Outcome, error) {
		return soak.Connections(ctx, length, clients)
	}
	return []*unit{
		soakUnit("four nodes", slopeAllowed, soak.Memory), soakUnit("connections", slopeOfPools, connections),
	}
}

// soakUnit is a soak whose objects, and whose resident memory, may grow by so many bytes an hour.
func soakUnit(name string, slope float64, run soakRun) *unit {
	u := &unit{
		layer: "soak", name: name, counts: "seconds", namespaces: true,
		goals: [3]uint64{0, 3600, 24 * 3600}, pieces: [2]uint64{1, 1},
	}
	u.work = func(ctx context.Context, w *workshop, _, _ uint64) (result, error) {
		o, err := run(ctx, w.soak)
		if err != nil {
			return result{}, fmt.Errorf("soak: %w", err)
		}
		return soaked(&o, u, slope, w), nil
	}
	return u
}

// soaked judges a soak.
func soaked(o *soak.Outcome, u *unit, allowed float64, w *workshop) result {
	heap, slope := soak.Slope(o.Samples, soak.Heap), soak.Slope(o.Samples, soak.Resident)
	goroutines, descriptors := soak.Leaks(o.Samples)
	first, last := uint64(0), uint64(0)
	if n := len(o.Samples); n > 0 {
		first, last = o.Samples[0].RSS, o.Samples[n-1].RSS
	}
	r := result{figures: map[string]uint64{
		"seconds": uint64(w.soak.Seconds()), "soak: cables cut": o.Cuts,
		"soak: frames received": o.Faults.Received, "soak: frames lost or altered": lostOrAltered(&o.Faults),
		"soak: frames doubled, late or reordered": o.Faults.Duplicated + o.Faults.Delayed + o.Faults.Reordered,
		"soak: resident kB at first, max":         first >> 10, "soak: resident kB at last, max": last >> 10,
		"soak: resident kB more an hour, max":   uint64(max(slope, 0)) >> 10,
		"soak: kB of objects more an hour, max": uint64(max(heap, 0)) >> 10,
		"soak: goroutines more, max":            uint64(max(goroutines, 0)),
		"soak: descriptors more, max":           uint64(max(descriptors, 0)),
	}}
	addFigures(r.figures, o.Counts)
	grows := goroutines > passing || descriptors > 0 ||
		w.soak >= shortestSoak && max(slope, heap) > allowed
	if grows || len(o.Wrong) > 0 {
		r.violation = &violation{
			Repeat: fmt.Sprintf("go run ./bench/campaign --%v --layer %q --only 0 --hours %v",
				w.profile, u.key(), w.soak.Hours()),
			Output: fmt.Sprintf("%d more goroutines, %d more descriptors, %.0f bytes an hour more in memory, "+
				"%.0f of objects (want %d, none, %.0f at most): %+v\n%s",
				goroutines, descriptors, slope, heap, passing, allowed, o.Samples, strings.Join(o.Wrong, "\n")),
		}
	}
	return r
}

func lostOrAltered(c *fault.Counts) uint64 { return c.Lost + c.Cut + c.Corrupted + c.Truncated }
