package congestion

import "testing"

var config = Config{InitialWindow: 10, LossWindow: 1, MinWindow: 2, MaxWindow: 100, InitialSSThresh: 20}

// is fails unless the controller has the given state.
func (n *NewReno) is(t *testing.T, what string, phase Phase, cwnd, ssthresh int) {
	t.Helper()
	if n.Phase() != phase || n.Window() != cwnd || n.SlowStartThreshold() != ssthresh {
		t.Errorf("%s: phase %d, cwnd %d, ssthresh %d; want %d, %d, %d", what,
			n.Phase(), n.Window(), n.SlowStartThreshold(), phase, cwnd, ssthresh)
	}
}

func TestNewReno_RFC5681_3_1_SlowStartThenCongestionAvoidance(t *testing.T) {
	n := NewNewReno(&config)
	n.is(t, "at first", Open, 10, 20)
	n.OnAck(10)
	n.is(t, "slow start: one for each packet", Open, 20, 20)
	n.OnAck(19)
	n.is(t, "congestion avoidance: not a window yet", Open, 20, 20)
	n.OnAck(1)
	n.is(t, "one for a window", Open, 21, 20)
	n.OnAck(21 + 5)
	n.is(t, "the next window", Open, 22, 20)
	n.OnAck(17)
	n.is(t, "what was left over counts (RFC 3465 §2.1)", Open, 23, 20)
	n.OnAck(3 * 23)
	n.is(t, "three windows at once: one packet", Open, 24, 20)
	n.OnAck(0)
	n.is(t, "nothing acknowledged: no growth", Open, 24, 20)
}

func TestNewReno_RFC3465_2_3_SlowStartLimit(t *testing.T) {
	c := config
	c.SlowStartLimit = 2
	n := NewNewReno(&c)
	n.OnAck(10)
	n.is(t, "one acknowledgement of ten packets", Open, 12, 20)
	c.SlowStartLimit = 1
	n = NewNewReno(&c)
	n.OnAck(10)
	n.is(t, "the limit of RFC 5681: one packet", Open, 11, 20)
}

// A window's growth begins anew behind a loss, and each window acknowledged is worth one packet, no
// matter how it is cut.
func TestNewReno_RFC3465_2_1_WindowsAreCountedOnce(t *testing.T) {
	n := NewNewReno(&config)
	n.OnAck(10)
	for cwnd := 20; cwnd < 30; cwnd++ {
		for range cwnd - 1 {
			n.OnAck(1)
		}
		n.is(t, "a packet before the end of a window", Open, cwnd, 20)
		n.OnAck(1)
		n.is(t, "a window", Open, cwnd+1, 20)
	}
	n.OnAck(29)
	n.OnLoss(30)
	n.OnRecovered()
	n.is(t, "a loss", Open, 15, 15)
	n.OnAck(14)
	n.is(t, "what was counted before the loss does not count", Open, 15, 15)
	n.OnAck(1)
	n.is(t, "a window behind it", Open, 16, 15)
	n.OnAck(15)
	n.OnRTO(16)
	n.OnRecovered()
	n.OnAck(7)
	n.is(t, "slow start", Open, 8, 8)
	n.OnAck(7)
	n.is(t, "what was counted before the RTO does not count", Open, 8, 8)
	n.OnAck(1)
	n.is(t, "a window behind it", Open, 9, 8)
}

func TestNewReno_RFC9002_7_3_2_OneReductionForEachRecovery(t *testing.T) {
	n := NewNewReno(&config)
	if !n.OnLoss(n.Window()) || n.OnLoss(n.Window()) {
		t.Error("want the first loss to begin a recovery, and no other")
	}
	n.is(t, "two losses", FastRecovery, 5, 5)
	n.OnAck(100)
	n.is(t, "no growth in recovery", FastRecovery, 5, 5)
	n.OnRecovered()
	n.OnAck(5)
	n.is(t, "behind it", Open, 6, 5)
	for range 10 {
		n.OnLoss(n.Window())
		n.OnRecovered()
	}
	n.is(t, "many losses: the minimum window", Open, 2, 2)
}

func TestNewReno_RFC5681_3_1_RTO(t *testing.T) {
	for _, hold := range []bool{false, true} {
		c := config
		c.HoldSSThresh = hold
		n := NewNewReno(&c)
		n.OnRTO(8)
		n.is(t, "half of what was in flight", RTORecovery, 1, 4)
		if n.OnLoss(n.Window()) {
			t.Error("a loss behind an RTO begins a recovery within a recovery")
		}
		n.OnAck(2)
		n.is(t, "slow start in RTO recovery", RTORecovery, 3, 4)
		n.OnRTO(1)
		n.is(t, "again", RTORecovery, 1, map[bool]int{false: 2, true: 4}[hold])
	}
}

func TestNewReno_RFC4015_3_2_SpuriousRTO(t *testing.T) {
	n := NewNewReno(&config)
	n.OnRTO(10)
	n.OnRTO(1)
	n.UndoRTO()
	n.is(t, "as before both", Open, 10, 20)
	n.OnRTO(10)
	n.ConfirmRTO()
	n.UndoRTO()
	n.is(t, "confirmed: no undo", RTORecovery, 1, 5)
	n.OnRTO(10)
	n.OnLoss(n.Window())
	n.UndoRTO()
	n.is(t, "a real loss: no undo", RTORecovery, 1, 5)
}

func TestDupThresh_RFC5681_3_2(t *testing.T) {
	if DupThresh != 3 {
		t.Errorf("%d packets have to overtake one, want 3", DupThresh)
	}
}

func TestNewReno_Bounds(t *testing.T) {
	n := NewNewReno(&Config{InitialWindow: 10, LossWindow: 1, MinWindow: 2, MaxWindow: 4})
	n.is(t, "at first", Open, 4, 4)
	n.OnAck(1000)
	n.is(t, "no more than the maximum", Open, 4, 4)
	n.OnAck(1)
	n.is(t, "in congestion avoidance, too", Open, 4, 4)
}

func TestNewReno_RFC7661_4_4_UnusedWindow(t *testing.T) {
	n := NewNewReno(&config)
	n.OnAck(10)
	n.OnLoss(9)
	n.is(t, "a loss with less than half of the window in flight: half of that", FastRecovery, 4, 4)
	n = NewNewReno(&config)
	n.OnAck(10)
	n.OnLoss(10)
	n.is(t, "a loss with half of it: half of the window", FastRecovery, 10, 10)

	c := config
	c.InitialSSThresh = 100
	n = NewNewReno(&c)
	n.OnAck(28)
	n.is(t, "38", Open, 38, 100)
	n.ssthresh = 20
	if !n.Decay() {
		t.Error("a window above the initial one does not decay")
	}
	n.is(t, "halved, and three quarters to come back to", Open, 19, 28)
	n.Decay()
	n.is(t, "no less than the initial window", Open, 10, 28)
	if n.Decay() {
		t.Error("the initial window decays")
	}
}
