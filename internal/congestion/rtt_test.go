package congestion

import (
	"testing"
	"time"
)

// The first sample and the formulas of RFC 6298 §2, by hand.
func TestRTT_RFC6298_2(t *testing.T) {
	var r RTT
	if r.HasSample() || r.RTO(time.Second, 0) != time.Second {
		t.Errorf("no sample: %+v", r)
	}
	for _, x := range []struct{ sample, srtt, rttvar time.Duration }{
		{800, 800, 400},
		{800, 800, 300},
		{1600, 900, 425},      // 300 + (800-300)/4, 800 + 800/8
		{100, 800, 425 + 93},  // (800-425)/4, 900 - 800/8
		{800, 800, 518 - 129}, // (0-518)/4
	} {
		r.Update(x.sample)
		if r.Smoothed() != x.srtt || r.rttvar != x.rttvar {
			t.Errorf("after %v: %v and %v, want %v and %v", x.sample, r.Smoothed(), r.rttvar, x.srtt, x.rttvar)
		}
	}
	if d := r.RTO(0, 7); d != 800+4*389+7 {
		t.Errorf("RTO %v", d)
	}
	if d := r.RTO(5000, 7); d != 800+5000+7 {
		t.Errorf("RTO %v where the clock is coarse", d)
	}
}

// A sample of nothing is a sample.
func TestRTT_Zero(t *testing.T) {
	var r RTT
	for range 100 {
		r.Update(0)
		if !r.HasSample() {
			t.Fatalf("%+v", r)
		}
	}
}

func TestRTT_NoAllocation(t *testing.T) {
	var r RTT
	n := NewNewReno(&config)
	if a := testing.AllocsPerRun(100, func() { r.Update(1000); n.OnAck(1); n.OnLoss(9); n.OnRecovered() }); a != 0 {
		t.Errorf("%v allocations, want 0", a)
	}
}
