package congestion

import (
	"math/bits"
	"time"
)

// Cubic is a congestion controller whose window depends on the time since its last loss, and not
// on round trips alone: it comes back to the window of that loss, stays about there, and then looks
// for more. Where that is slower than NewReno, which it is on short paths, it grows as NewReno with
// its backoff would on average. Slow start and recovery are NewReno's.
//
//	window of the loss  - - - - - - -.-----'- -    W(t) = origin + 0.4 (t-K)^3 packets, t in s
//	                          .-'
//	backoff * window     .-'                       K: when W is the origin
//
// Source: RFC 9438. Not here: HyStart++, and a W_est that is faster once it has reached the last
// loss's window (§4.3), which Linux has neither had at first.
type Cubic struct {
	NewReno
	backoff int           // in 1/1024: what is left of the window behind a loss; beta of RFC 9438 §4.6
	lastMax int           // W_max, §4.7; 0: none
	origin  int           // of the cubic function
	began   time.Duration // the epoch: congestion avoidance since the last loss
	epoch   bool          // it has begun
	rise    time.Duration // K, §4.2
	reno    int           // W_est, §4.3, in 1/1024 packets
	left    int           // of what was acknowledged, in 1/1024: not in reno yet
}

const (
	one        = 1024
	msPerCubed = 2_500_000_000 // cubed milliseconds of one packet: 1/C, with C of 0.4 a cubed second
	// maxAway bounds t-K, in ms: its cube fits, and is more than any window.
	maxAway = 100_000
)

// NewCubic returns a controller at its initial window, of which a loss leaves so many 1024ths. It
// keeps c.
func NewCubic(c *Config, backoff int) Cubic {
	return Cubic{NewReno: NewNewReno(c), backoff: backoff}
}

// OnAckAt is NewReno's OnAck at a time, on a path with a smoothed round-trip time.
func (c *Cubic) OnAckAt(packets int, now, srtt time.Duration) {
	if packets == 0 || c.phase == FastRecovery || c.cwnd < c.ssthresh {
		c.OnAck(packets)
		return
	}
	if !c.epoch {
		c.begin(now)
	}
	c.left += packets * 3 * one * (one - c.backoff) / (one + c.backoff)
	c.reno += c.left / c.cwnd
	c.left %= c.cwnd
	per := 100 * c.cwnd // acknowledged packets for each by which the window grows: hardly ever
	if more := min(c.target(now+srtt-c.began), 3*c.cwnd*one/2) - c.cwnd*one; more > 0 {
		per = max(c.cwnd*one/more, 1)
	}
	c.acked += packets
	c.cwnd += c.acked / per
	c.acked %= per
	c.cwnd = min(max(c.cwnd, c.reno/one), c.config.MaxWindow)
}

// begin begins the epoch.
func (c *Cubic) begin(now time.Duration) {
	c.epoch, c.began, c.reno, c.left, c.acked = true, now, c.cwnd*one, 0, 0
	c.origin = max(c.cwnd, c.lastMax)
	c.rise = time.Duration(cubeRoot(uint64(c.origin-c.cwnd)*msPerCubed)) * time.Millisecond
}

// target is W(t), in 1/1024 packets.
func (c *Cubic) target(t time.Duration) int {
	away := int(min(max((t-c.rise)/time.Millisecond, -maxAway), maxAway))
	return c.origin*one + away*away*away/(msPerCubed/one)
}

// OnLoss is NewReno's, with this controller's backoff. The window of a loss that comes before the
// last one's was reached is not to be reached either: others want a part (fast convergence).
// Source: RFC 9438 §4.6, §4.7.
func (c *Cubic) OnLoss(flight int) (entered bool) {
	before := c.cwnd
	if !c.NewReno.OnLoss(flight) {
		return false
	}
	if 2*flight >= before {
		flight = before
	}
	c.epoch = false
	if before < c.lastMax {
		before = before * (one + c.backoff) / (2 * one)
	}
	c.lastMax = before
	c.ssthresh = max(flight*c.backoff/one, c.config.MinWindow)
	c.cwnd = c.ssthresh
	return true
}

// OnRTO is NewReno's, with this controller's backoff. What was learned is forgotten.
// Source: RFC 9438 §4.8.
func (c *Cubic) OnRTO(flight int) {
	held := c.phase != Open && c.config.HoldSSThresh
	c.NewReno.OnRTO(flight)
	c.epoch, c.lastMax = false, 0
	if !held {
		c.ssthresh = max(flight*c.backoff/one, c.config.MinWindow)
	}
}

// cubeRoot returns the largest number whose cube is no more than x. Integers are the same on all
// machines.
func cubeRoot(x uint64) (root uint64) {
	for bit := uint64(1) << (bits.Len64(x) / 3); bit > 0; bit /= 2 {
		if r := root | bit; r <= 1<<21 && r*r*r <= x {
			root = r
		}
	}
	return root
}
