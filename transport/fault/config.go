package fault

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Config says how often what happens to a received frame: probabilities from 0, never, to 1, always, each drawn
// for itself.
type Config struct {
	Loss      float64
	Duplicate float64
	Truncate  float64 // the payload ends early, at any byte
	Corrupt   float64 // one bit of the payload, of what is left of it, is flipped
	Delay     float64 // held back for DelayMin to DelayMax
	Reorder   float64 // if not delayed: held back until 1 to ReorderBy frames that were not have overtaken it

	DelayMin, DelayMax time.Duration // all in between alike; both ends belong to it
	// ReorderBy is how many frames may overtake one. Zero is DefaultReorderBy. One that is not overtaken comes
	// after ReorderPatience.
	ReorderBy int

	// Match limits the faults to frames for which it returns true. Nil is all. Poll calls it; it may neither keep
	// nor change the frame, nor call the link. A cut cable asks nobody.
	Match func(*transport.Frame) bool
}

const (
	// DefaultReorderBy is what parallel queues of a NIC do to a flow.
	DefaultReorderBy = 3
	// ReorderPatience is how long a frame waits to be overtaken.
	ReorderPatience = time.Millisecond
	// MaxHeld is how many frames a link holds back at once; more are lost, and counted as Overflowed.
	MaxHeld = 4096
)

func (c *Config) validate() error {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"Loss", c.Loss}, {"Duplicate", c.Duplicate}, {"Truncate", c.Truncate},
		{"Corrupt", c.Corrupt}, {"Delay", c.Delay}, {"Reorder", c.Reorder},
	} {
		if !(p.value >= 0 && p.value <= 1) { // nor NaN
			return fmt.Errorf("fault: Config.%s %v (want a probability, 0 to 1)", p.name, p.value)
		}
	}
	if c.DelayMin < 0 || c.DelayMax < c.DelayMin {
		return fmt.Errorf("fault: Config.DelayMin %v, DelayMax %v (want 0 <= DelayMin <= DelayMax)", c.DelayMin, c.DelayMax)
	}
	if c.Delay > 0 && c.DelayMax == 0 {
		return fmt.Errorf("fault: Config.Delay %v, but DelayMax is 0 (want how long)", c.Delay)
	}
	if c.ReorderBy < 0 {
		return fmt.Errorf("fault: Config.ReorderBy %d (want 1 or more, or 0 for %d)", c.ReorderBy, DefaultReorderBy)
	}
	return nil
}

// idle reports whether c does nothing.
func (c *Config) idle() bool {
	return c.Loss+c.Duplicate+c.Corrupt+c.Truncate+c.Delay+c.Reorder == 0
}

// Counts of what happened to frames. A frame can have several faults. When nothing is held back, and nothing was
// cut on the way out, Received + Duplicated = Lost + Cut + Overflowed + Delivered.
type Counts struct {
	Received   uint64 `json:"received"`   // from the link inside
	Lost       uint64 `json:"lost"`       // by chance
	Cut        uint64 `json:"cut"`        // received or sent while the cable was cut
	Duplicated uint64 `json:"duplicated"` // came twice
	Corrupted  uint64 `json:"corrupted"`
	Truncated  uint64 `json:"truncated"`
	Delayed    uint64 `json:"delayed"`
	Reordered  uint64 `json:"reordered"`
	Overflowed uint64 `json:"overflowed"` // lost for want of room, MaxHeld, instead of being held back or doubled
	Delivered  uint64 `json:"delivered"`  // by Poll
}
