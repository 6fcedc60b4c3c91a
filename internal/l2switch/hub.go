package l2switch

import (
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Hub is a repeater: a frame that comes in by one port leaves by all others, unchanged. It looks at
// neither addresses nor tags.
type Hub struct{ down []bool }

// AddPort adds a port and returns its number.
func (h *Hub) AddPort() int {
	h.down = append(h.down, false)
	return len(h.down) - 1
}

// RemovePort removes the port that was added last.
func (h *Hub) RemovePort() { h.down = h.down[:len(h.down)-1] }

// SetUp sets whether a port has a carrier; a new one has.
func (h *Hub) SetUp(number int, up bool) { h.down[number] = !up }

// Forward is like Switch.Forward; the instant does not matter.
func (h *Hub) Forward(_ monotime.Time, in int, f *transport.Frame, out []Egress) []Egress {
	if h.down[in] {
		return out
	}
	for number := range h.down {
		if number != in && !h.down[number] {
			out = append(out, Egress{Port: number, OptionalTag: f.OptionalTag})
		}
	}
	return out
}

// Reach is like Switch.Reach: all other ports, including those that are down.
func (h *Hub) Reach(in int, tagged bool, tag transport.Tag, out []Egress) []Egress {
	for number := range h.down {
		if number != in {
			out = append(out, Egress{Port: number, OptionalTag: transport.OptionalTag{Tagged: tagged, Tag: tag}})
		}
	}
	return out
}
