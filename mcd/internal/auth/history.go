package auth

import (
	"math"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// History tells which of a sender's frames are older than a given time.
//
// A receiver that was started again has forgotten which counters it has accepted. That the sender
// is alive does not tell what it sends now from what was recorded before. So a challenge says how
// long its sender has been there, and the response, which counters were in use before: the floor.
// What is below was sent to the receiver's former life, or before it.
//
//	R opens at t0          Open returns at t1 = t0 + OpeningTime
//	   |--------------------|------- S sends to R -------
//	      ^ a checkpoint of S: the floor
//
// The time is told by its distance, less what two clocks may drift apart, and so comes out late, by
// as long as the challenge took and a little more: never early, so that nothing older than R is
// accepted. And nothing that was sent after Open had returned is refused, as long as that and the
// distance between two checkpoints are shorter than OpeningTime.
type History struct {
	entries [checkpoints]checkpoint
	count   int // of all that were added
}

// checkpoint says that the frames sealed before a time have counters up to counter.
type checkpoint struct {
	at      monotime.Time
	counter uint64
}

// Due reports whether a frame that is about to be sealed needs a checkpoint, if the last one is as
// old as that.
func Due(sinceLast time.Duration) bool { return sinceLast >= checkpointInterval }

// Add adds a checkpoint: the counter of the last frame that was sealed before now. The first one is
// made when the sender opens, with 0.
func (h *History) Add(now monotime.Time, counter uint64) {
	h.entries[h.count%checkpoints] = checkpoint{now, counter}
	h.count++
}

// Floor returns the highest counter that may have been used before a time, which another clock says
// was so many ns ago. Last is the present one.
func (h *History) Floor(now monotime.Time, age, last uint64) uint64 {
	age -= age / maxDrift
	at := now.Add(-time.Duration(min(age, math.MaxInt64)))
	floor := last
	for i := h.count - 1; i >= max(0, h.count-checkpoints); i-- { // the newest first
		e := &h.entries[i%checkpoints]
		if !at.Before(e.at) { // frames of that very instant have higher counters
			break
		}
		floor = e.counter
	}
	return floor
}
