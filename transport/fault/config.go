package fault

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/internal/impair"
	"github.com/rawlane/rawlane/transport"
)

// Config says how often what happens to a received frame. Probabilities go from 0, never, to 1,
// always; each is drawn on its own.
type Config struct {
	Loss      float64
	Duplicate float64
	Truncate  float64 // the payload ends early, at any byte
	Corrupt   float64 // one bit of the (truncated) payload is flipped
	Delay     float64 // held back for DelayMin to DelayMax
	Reorder   float64 // of frames not delayed: held back until 1 to ReorderBy later frames have overtaken it

	DelayMin, DelayMax time.Duration // delays are uniform in [DelayMin, DelayMax]
	// ReorderBy is how many frames may overtake one. 0 means DefaultReorderBy. A frame that is not
	// overtaken in time comes after ReorderTimeout.
	ReorderBy int

	// Match limits the faults to frames for which it returns true; nil means all frames. Poll calls
	// it. It must not keep or change the frame, nor call the link. Cut does not ask it.
	Match func(*transport.Frame) bool
}

const (
	// DefaultReorderBy is what the parallel queues of a NIC do to a flow.
	DefaultReorderBy = 3
	// ReorderTimeout is how long a frame waits to be overtaken.
	ReorderTimeout = time.Millisecond
	// MaxDelayed is how many frames a link's delay queue holds; more are lost, as Overflowed.
	MaxDelayed = 4096
)

func (c *Config) validate() error {
	m := c.model()
	if err := m.Validate(); err != nil {
		return fmt.Errorf("fault: Config.%w", err)
	}
	if c.DelayMin < 0 || c.DelayMax < c.DelayMin {
		return fmt.Errorf("fault: Config.DelayMin %v, DelayMax %v (want 0 <= DelayMin <= DelayMax)",
			c.DelayMin, c.DelayMax)
	}
	if c.Delay > 0 && c.DelayMax == 0 {
		return fmt.Errorf("fault: Config.Delay %v, but DelayMax is 0 (want how long)", c.Delay)
	}
	if c.ReorderBy < 0 {
		return fmt.Errorf("fault: Config.ReorderBy %d (want 1 or more, or 0 for %d)", c.ReorderBy, DefaultReorderBy)
	}
	return nil
}

func (c *Config) model() impair.Model {
	return impair.Model{
		Loss: c.Loss, Duplicate: c.Duplicate, Truncate: c.Truncate, Corrupt: c.Corrupt,
		Delay: c.Delay, Reorder: c.Reorder,
	}
}

// Counts of what happened to frames. One frame may have several faults. While the delay queue is
// empty, and nothing was cut on the way out,
// Received + Duplicated = Lost + Cut + Overflowed + Delivered.
type Counts struct {
	Received   uint64 `json:"received"`   // from the inner link
	Lost       uint64 `json:"lost"`       // by Config.Loss, or in the delay queue when the link was closed
	Cut        uint64 `json:"cut"`        // received or sent while the cable was cut
	Duplicated uint64 `json:"duplicated"` // came twice
	Corrupted  uint64 `json:"corrupted"`
	Truncated  uint64 `json:"truncated"`
	Delayed    uint64 `json:"delayed"`
	Reordered  uint64 `json:"reordered"`
	Overflowed uint64 `json:"overflowed"` // delayed or duplicated, and lost as the delay queue was full
	Delivered  uint64 `json:"delivered"`  // by Poll
}
