package mbcf

import (
	"math"
	"time"

	"github.com/rawlane/rawlane/internal/prng"
)

// What IEEE 802.3 says of collisions at 100 Mb/s.
const (
	slotTime    = 5120 * time.Nanosecond // 512 bits
	jam         = 960 * time.Nanosecond  // a preamble and 32 bits
	frameGap    = 960 * time.Nanosecond
	maxExponent = 10 // of the range that a backoff is from
	maxAttempts = 16 // then the frame is given up
)

// never is when a station that has nothing to send begins.
const never = time.Duration(math.MaxInt64)

// hub is a repeater with two stations, which listen before they send, and stop where both have
// begun: CSMA/CD.
//
// Source: IEEE 802.3 §4.2.3.
type hub struct {
	distance time.Duration
	random   prng.Source
	idle     time.Duration // when the last frame, and the gap behind it, are over
	backoff  [2]time.Duration
	attempts [2]int // of the frame at hand
}

func newHub(distance time.Duration, seed uint64) *hub {
	return &hub{distance: distance, random: prng.Source(seed)}
}

// next returns the station that has the hub next, and from when on. ready tells when each has a
// frame; one of them must have one.
func (h *hub) next(ready [2]time.Duration) (station int, start time.Duration) {
	for {
		var begin [2]time.Duration
		for i := range begin {
			begin[i] = max(ready[i], h.idle, h.backoff[i])
		}
		if ready[0] == never || ready[1] == never || (begin[0]-begin[1]).Abs() >= h.distance {
			if begin[1] < begin[0] {
				station = 1
			}
			h.attempts[station] = 0
			return station, begin[station]
		}
		h.collide(max(begin[0], begin[1]))
	}
}

// collide has both stations stop, and try again later. One that has tried too often gives its frame
// up; MBCF sends that again, as a new one.
func (h *hub) collide(at time.Duration) {
	h.idle = at + h.distance + jam + frameGap
	for i := range h.attempts {
		if h.attempts[i]++; h.attempts[i] == maxAttempts {
			h.attempts[i] = 0
		}
		slots := h.random.Below(1 << min(h.attempts[i], maxExponent))
		h.backoff[i] = h.idle + time.Duration(slots)*slotTime
	}
}
