package congestion

import (
	"testing"
	"time"
)

// backoff is RFC 9438's: a loss leaves 0.7 of a window, 717/1024.
const backoff = 717

// roundTrips acknowledges whole windows, one each round trip, until an instant.
func (c *Cubic) roundTrips(now, until, rtt time.Duration) {
	for ; now < until; now += rtt {
		c.OnAckAt(c.cwnd, now, rtt)
	}
}

// From 0.7 of the last loss's window of 1,000 it takes K, the cube root of 300/0.4 s, to be back.
// It is nearly there for half of that time, and as slow to leave.
func TestCubic_RFC9438_4_2_ComesBackAndGoesOn(t *testing.T) {
	config := Config{InitialWindow: 1000, LossWindow: 1, MinWindow: 2, MaxWindow: 1e6, InitialSSThresh: 1}
	const rtt, k = 200 * time.Millisecond, 9086 * time.Millisecond
	at := func(share float64) time.Duration { return time.Duration(share * float64(k)) }
	for _, w := range []struct {
		until       time.Duration
		least, most int
	}{
		{at(.5), 955, 970}, // 1000 - 300/8
		{at(1), 998, 1001},
		{at(1.5), 1035, 1045}, // 1000 + 300/8
		{at(2), 1290, 1310},   // 1000 + 300
	} {
		c := NewCubic(&config, backoff)
		if !c.OnLoss(1000) || c.Window() != 700 || c.SlowStartThreshold() != 700 {
			t.Fatalf("a loss: cwnd %d, ssthresh %d; want 0.7 of 1000", c.Window(), c.SlowStartThreshold())
		}
		c.OnRecovered()
		c.roundTrips(0, w.until, rtt)
		if got := c.Window(); got < w.least || got > w.most {
			t.Errorf("cwnd %d after %v, want %d to %d", got, w.until, w.least, w.most)
		}
	}
}

// On a short path the curve takes thousands of round trips. The window grows by 3(1-b)/(1+b) of a
// packet in each instead, which is 0.53, or 0.33 with a backoff to 0.8, and does not depend on time.
func TestCubic_RFC9438_4_3_RenoFriendly(t *testing.T) {
	config := Config{InitialWindow: 100, LossWindow: 1, MinWindow: 2, MaxWindow: 1000, InitialSSThresh: 1}
	for _, w := range []struct{ backoff, window, after int }{{717, 70, 123}, {819, 79, 112}} {
		c := NewCubic(&config, w.backoff)
		c.OnLoss(100)
		c.OnRecovered()
		if c.Window() != w.window {
			t.Errorf("%d: cwnd %d behind a loss, want %d", w.backoff, c.Window(), w.window)
		}
		c.roundTrips(0, 100*time.Millisecond, time.Millisecond)
		if got := c.Window(); got < w.after-1 || got > w.after+1 {
			t.Errorf("%d: cwnd %d after 100 round trips, want %d", w.backoff, got, w.after)
		}
	}
}

// A second loss before the window of the first one was reached: others have come, and want a part.
func TestCubic_RFC9438_4_7_FastConvergence(t *testing.T) {
	config := Config{InitialWindow: 1000, LossWindow: 1, MinWindow: 2, MaxWindow: 1e6, InitialSSThresh: 1}
	c := NewCubic(&config, backoff)
	c.OnLoss(1000)
	if c.lastMax != 1000 || c.OnLoss(700) {
		t.Errorf("W_max %d, and a second loss in one recovery counts", c.lastMax)
	}
	c.OnRecovered()
	c.OnLoss(700)
	if c.lastMax != 595 { // 0.85 of 700
		t.Errorf("W_max %d, want 595", c.lastMax)
	}
}

// A timeout: slow start to the backoff of what was in flight, then a curve that begins at its middle.
func TestCubic_RFC9438_4_8_Timeout(t *testing.T) {
	config := Config{InitialWindow: 100, LossWindow: 1, MinWindow: 2, MaxWindow: 1000, InitialSSThresh: 1}
	c := NewCubic(&config, backoff)
	c.OnRTO(100)
	c.is(t, "RTO", RTORecovery, 1, 70)
	c.OnRecovered()
	c.OnAckAt(69, time.Second, time.Millisecond)
	c.is(t, "slow start", Open, 70, 70)
	c.OnAckAt(70, time.Second, time.Millisecond)
	if c.rise != 0 || c.origin != 70 {
		t.Errorf("K %v, origin %d; want 0 and 70", c.rise, c.origin)
	}
	c.OnRTO(1)
	c.is(t, "the least threshold", RTORecovery, 1, 2)
}

// An epoch of an hour, and the largest window: nothing overflows, and the window keeps its bounds.
func TestCubic_Bounds(t *testing.T) {
	config := Config{InitialWindow: 46_000, LossWindow: 1, MinWindow: 2, MaxWindow: 46_000, InitialSSThresh: 1}
	c := NewCubic(&config, backoff)
	c.OnLoss(46_000)
	c.OnRecovered()
	for now := time.Duration(0); now < time.Hour; now += time.Second {
		before := c.Window()
		c.OnAckAt(before, now, time.Second)
		if c.Window() < before || c.Window() > config.MaxWindow || c.Window() > before+before/2+1 {
			t.Fatalf("cwnd %d, then %d, after %v", before, c.Window(), now)
		}
	}
	if c.Window() != config.MaxWindow {
		t.Errorf("cwnd %d after an hour, want %d", c.Window(), config.MaxWindow)
	}
}

func TestCubeRoot(t *testing.T) {
	for x := range uint64(100_000) {
		if r := cubeRoot(x); r*r*r > x || (r+1)*(r+1)*(r+1) <= x {
			t.Fatalf("cube root of %d: %d", x, r)
		}
	}
	for _, r := range []uint64{1 << 10, 48_646, 1 << 20} {
		if a, b := cubeRoot(r*r*r), cubeRoot(r*r*r-1); a != r || b != r-1 {
			t.Errorf("cube roots about %d: %d, %d", r, a, b)
		}
	}
}
