//go:build linux

package harness

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// throws are those of a try: the quickest try counts, as an interrupt may come between.
	throws     = 20
	throwTries = 5
	// catchPatience is how long a player waits for the ball: the other one may not have its core.
	catchPatience = 200 * time.Microsecond
	// looks are those between two looks at the clock.
	looks = 64
)

// catch is a game of two threads, which throw a ball to and fro: how long it takes is how far apart
// their cores are. They meet by the clock, every probeEvery.
type catch struct {
	begun time.Time
	_     [64]byte // the ball has a line of the processor's cache for itself
	ball  atomic.Int64
	_     [64]byte
}

// await waits for the next turn, and returns its number.
func (c *catch) await() (turn int64) {
	turn = int64(time.Since(c.begun)/probeEvery) + 1
	time.Sleep(time.Until(c.begun.Add(time.Duration(turn) * probeEvery)))
	return turn
}

// play plays a turn: player 0 throws first, player 1 throws back, and others look on. Player 0 gets
// the time of there and back. Not ok: one was not there in time, or this is not player 0.
func (c *catch) play(player int, turn int64) (took time.Duration, ok bool) {
	const perTurn = 2 * throws * throwTries
	if player > 1 {
		return 0, false
	}
	ball := turn * perTurn // each throw has a number of its own: what is left of the last turn is not caught
	took = math.MaxInt64
	for range throwTries {
		start := time.Now()
		deadline := start.Add(catchPatience)
		for range throws {
			if player == 0 {
				c.ball.Store(ball + 1)
			} else if !c.caught(ball+1, deadline) {
				return 0, false
			}
			ball += 2
			if player == 1 {
				c.ball.Store(ball)
			} else if !c.caught(ball, deadline) {
				return 0, false
			}
		}
		took = min(took, time.Since(start)/throws)
	}
	return took, player == 0
}

// caught waits for a ball until the deadline.
func (c *catch) caught(ball int64, deadline time.Time) bool {
	for {
		for range looks {
			if c.ball.Load() == ball {
				return true
			}
		}
		if !time.Now().Before(deadline) {
			return false
		}
	}
}
