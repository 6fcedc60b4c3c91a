// Package csmacd is a repeater hub at 100 Mb/s: its stations listen before they send, and stop
// where several have begun.
//
// Source: IEEE 802.3 §4.2.3.
package csmacd

import (
	"math"
	"time"

	"github.com/rawlane/rawlane/internal/prng"
)

// ByteTime is how long a byte is on a wire of 100 Mb/s.
const ByteTime = 80 * time.Nanosecond

// What IEEE 802.3 says of collisions at 100 Mb/s.
const (
	slotTime    = 64 * ByteTime // 512 bits
	jam         = 12 * ByteTime // a preamble and 32 bits
	frameGap    = 12 * ByteTime
	maxExponent = 10 // of the range that a backoff is from
	maxAttempts = 16 // then the frame is given up
)

// Never is when a station that has nothing to send begins.
const Never = time.Duration(math.MaxInt64)

// Hub is a repeater and its stations.
type Hub struct {
	distance time.Duration
	random   prng.Source
	idle     time.Duration // when the last frame, and the gap behind it, are over
	stations []station
}

type station struct {
	begin    time.Duration // when it sends the frame at hand, as far as it has heard
	backoff  time.Duration
	attempts int
}

// New returns a hub. distance is how long a bit takes from one station to another: one that begins
// within it does not hear the other. The seed is of backoffs.
func New(stations int, distance time.Duration, seed uint64) *Hub {
	return &Hub{distance: distance, random: prng.Source(seed), stations: make([]station, stations)}
}

// First returns when the first station begins. ready tells when each has a frame: Never if none
// has.
func (h *Hub) First(ready []time.Duration) time.Duration {
	first := Never
	for i := range h.stations {
		s := &h.stations[i]
		s.begin = max(ready[i], h.idle, s.backoff)
		first = min(first, s.begin)
	}
	return first
}

// Contend has the first station begin, and with it those that do not hear it. It returns who has
// the hub, and from when on; or false: they have collided, and try again later. One of them must
// have a frame.
func (h *Hub) Contend(ready []time.Duration) (winner int, start time.Duration, ok bool) {
	start = h.First(ready)
	last, others := start, -1
	for i := range h.stations {
		switch s := &h.stations[i]; {
		case s.begin-start < h.distance:
			last = max(last, s.begin)
			others++
		case s.begin > start:
			continue
		}
		winner = i
	}
	if others <= 0 {
		h.stations[winner].attempts = 0
		return winner, start, true
	}
	h.idle = last + h.distance + jam + frameGap
	for i := range h.stations {
		if s := &h.stations[i]; s.begin-start < h.distance {
			h.collide(s)
		}
	}
	return 0, 0, false
}

// collide has a station try again later. One that has tried too often gives its frame up, which is
// sent again as a new one.
func (h *Hub) collide(s *station) {
	if s.attempts++; s.attempts == maxAttempts {
		s.attempts = 0
	}
	slots := h.random.Below(1 << min(s.attempts, maxExponent))
	s.backoff = h.idle + time.Duration(slots)*slotTime
}

// Carry has a frame and the gap behind it end then.
func (h *Hub) Carry(end time.Duration) { h.idle = end }
