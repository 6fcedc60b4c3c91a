// Package simfault is what simulations of cores have in common that do to their nodes what drivers,
// processors and switches may do: the names of the points where that happens, and the figures that
// bench/campaign reads.
package simfault

import (
	"encoding/json"
	"fmt"

	"github.com/rawlane/rawlane/sim"
)

// The marked points of every core. A core has others besides.
const (
	RefusedReceive   = "refused receive"
	ShortFrame       = "short frame"
	SameFrameAtOnce  = "same frame at once"
	FrameKept        = "frame kept for long"
	KeptFrameAgain   = "kept frame comes again"
	EarlyAdvance     = "early advance"
	JustBefore       = "advance just before a deadline"
	LateTimer        = "late timer"
	TimerTwice       = "timer twice"
	SlowHandler      = "slow handler"
	ClockStandsStill = "clock stands still"
	CrashInABatch    = "crash in the middle of a batch"
)

// Frame is one that a switch has kept, and that comes again, much later.
type Frame struct {
	To, From, NIC int
	Bytes         []byte
}

// Figures are counts by name. Their String is what bench/campaign reads.
type Figures map[string]uint64

func (f Figures) String() string {
	b, err := json.Marshal(map[string]uint64(f))
	if err != nil {
		panic(fmt.Sprint("figures: ", err))
	}
	return string(b)
}

// AddNetwork adds what a run's network has done to its frames.
func (f Figures) AddNetwork(c *sim.Counters) {
	for name, n := range map[string]uint64{
		"frames": c.Sent, "fault: lost": c.Lost, "fault: duplicated": c.Duplicated,
		"fault: reordered": c.Reordered, "fault: delayed": c.Delayed, "fault: corrupted": c.Corrupted,
		"fault: cut": c.Cut, "fault: misrouted": c.Misrouted, "fault: in a burst": c.Burst,
		"fault: ring full": c.Overrun,
	} {
		f[name] += n
	}
}

// AddPoints adds how often each of a core's points was hit in a run, also 0: one that is never hit
// shows.
func (f Figures) AddPoints(points []string, hit map[string]uint64) {
	for _, point := range points {
		f["point: "+point] += hit[point]
	}
}
