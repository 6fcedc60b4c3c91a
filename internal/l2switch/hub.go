package l2switch

import (
	"fmt"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Hub is a repeater: a frame that comes in by one port leaves by all others, unchanged. It looks at
// neither addresses nor tags, and counts nothing. Its methods are like the Switch's.
type Hub struct{ down []bool }

// AddPort adds a port and returns its number. All ports of a hub are alike. The only error is
// MaxPorts.
func (h *Hub) AddPort(Port) (number int, err error) {
	if len(h.down) >= MaxPorts {
		return 0, fmt.Errorf("a hub has at most %d ports", MaxPorts)
	}
	h.down = append(h.down, false)
	return len(h.down) - 1, nil
}

// RemovePort removes the port that was added last.
func (h *Hub) RemovePort() { h.down = h.down[:len(h.down)-1] }

// SetUp sets whether a port has a carrier; a new one has.
func (h *Hub) SetUp(number int, up bool) { h.down[number] = !up }

// Decide appends to out where a frame leaves that came in by port in.
func (h *Hub) Decide(_ monotime.Time, in int, f *transport.Frame, out []Egress) ([]Egress, Verdict) {
	if h.down[in] {
		return out, PortDown
	}
	for number := range h.down {
		if number != in && !h.down[number] {
			out = append(out, Egress{Port: number, OptionalTag: f.OptionalTag})
		}
	}
	return out, Flooded
}

// Count does nothing.
func (h *Hub) Count(Verdict) {}

// Reach appends all other ports, including those that are down.
func (h *Hub) Reach(in int, tag transport.OptionalTag, out []Egress) []Egress {
	for number := range h.down {
		if number != in {
			out = append(out, Egress{Port: number, OptionalTag: tag})
		}
	}
	return out
}
