// Package impair is the model of a network that harms frames: which of them it loses, duplicates,
// alters and delays. Package transport/fault applies it to links, package sim to simulated
// networks.
package impair

import (
	"fmt"

	"github.com/rawlane/rawlane/internal/prng"
)

// Model has the probability of each impairment of a frame, 0 to 1. Each is drawn on its own, but
// a lost frame has no other, and a delayed one is not reordered. (The words are those of
// tc-netem(8).)
type Model struct {
	Loss      float64 // the frame does not arrive
	Duplicate float64 // it arrives twice; the second copy is whole
	Truncate  float64 // it arrives shortened
	Corrupt   float64 // it arrives altered
	Delay     float64 // it arrives late
	Reorder   float64 // later frames arrive before it
}

// Impairments of one frame.
type Impairments struct{ Lost, Duplicated, Truncated, Corrupted, Delayed, Reordered bool }

// Draw decides what happens to a frame. It draws in a fixed order, and only for what the model
// has: what a seed leads to changes only where the model does.
func (m *Model) Draw(rng *prng.Source) (i Impairments) {
	if i.Lost = rng.Hits(m.Loss); i.Lost {
		return i
	}
	i.Duplicated = rng.Hits(m.Duplicate)
	i.Truncated = rng.Hits(m.Truncate)
	i.Corrupted = rng.Hits(m.Corrupt)
	i.Delayed, i.Reordered = m.DrawLateness(rng)
	return i
}

// DrawLateness decides whether a frame is late, and nothing else.
func (m *Model) DrawLateness(rng *prng.Source) (delayed, reordered bool) {
	delayed = rng.Hits(m.Delay)
	return delayed, !delayed && rng.Hits(m.Reorder)
}

// IsZero reports whether the model harms no frame.
func (m *Model) IsZero() bool { return *m == Model{} }

// Validate names the first probability that is none.
func (m *Model) Validate() error {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"Loss", m.Loss}, {"Duplicate", m.Duplicate}, {"Truncate", m.Truncate},
		{"Corrupt", m.Corrupt}, {"Delay", m.Delay}, {"Reorder", m.Reorder},
	} {
		if !(p.value >= 0 && p.value <= 1) { // NaN is out of range too
			return fmt.Errorf("%s %v (want a probability, 0 to 1)", p.name, p.value)
		}
	}
	return nil
}
