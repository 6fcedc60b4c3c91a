package reliable

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
)

// window sets a lane's congestion window and slow start threshold.
func (s *sender) window(cwnd, ssthresh int) {
	c := renoConfig
	c.InitialWindow, c.InitialSSThresh = cwnd, ssthresh
	s.reno = congestion.NewNewReno(&c)
}

// suspended returns two ends of which the second was suspended until the RTO of the first, with n
// frames in flight and a congestion window of 100.
func suspended(t *testing.T, n int) (p *pair, s *sender) {
	p = newPair(t, 120).open()
	a := p.ends[0]
	s = &a.c.lanes[Requests].sender
	s.window(100, 120)
	for range n {
		a.write(p.now, Requests, 100)
	}
	a.c.Uncork(Requests)
	p.send(0)
	p.now = s.rtoDeadline
	a.advance(p.now)
	if s.reno.Window() != minWindow || s.lost != n {
		t.Fatalf("cwnd %d, %d of %d lost", s.reno.Window(), s.lost, n)
	}
	return p, s
}

// All frames were late and none lost: their acknowledgement shows it, and the window is as before.
func TestSpuriousRTO_AllLate(t *testing.T) {
	p, s := suspended(t, 50)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.reno.Window() < 100 || s.reno.SlowStartThreshold() < 120 || !p.ends[0].done() || p.ends[0].c.cfg.Counters.Retransmitted > 0 {
		t.Errorf("%+v, %+v", s.reno, *p.ends[0].c.cfg.Counters)
	}
	p.settle()
}

// Some were retransmitted before the acknowledgement: those prove nothing, the others do. What is
// not acknowledged yet is not retransmitted.
func TestSpuriousRTO_SomeRetransmitted(t *testing.T) {
	p, s := suspended(t, 50)
	early, rest := p.inTransit[1][:20], p.inTransit[1][20:]
	p.inTransit[1] = nil
	if p.send(0) != minWindow+1 {
		t.Fatalf("%q", p.describe(1))
	}
	probe := p.inTransit[1][minWindow:]
	p.inTransit[1] = slices.Concat(early, probe)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	p.send(0)
	if n := p.ends[0].c.cfg.Counters.Retransmitted; n != minWindow || s.reno.Window() < 100 {
		t.Errorf("%d retransmitted, %+v", n, s.reno)
	}
	p.inTransit[1] = append(p.inTransit[1], rest...)
	p.settle()
	if n := p.ends[0].c.cfg.Counters.Retransmitted; n != minWindow || !p.ends[0].done() {
		t.Errorf("%d retransmitted, done %t", n, p.ends[0].done())
	}
}

// All were lost: the acknowledgement of a retransmission proves nothing.
func TestSpuriousRTO_NotIfLost(t *testing.T) {
	p, s := suspended(t, 50)
	p.inTransit[1] = nil
	p.send(0)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.reno.Window() > 2*minWindow || s.reno.SlowStartThreshold() > 50 {
		t.Errorf("%+v", s.reno)
	}
	p.pass(time.Second)
	was := s.reno
	if was.UndoRTO(); !p.ends[0].done() || was != s.reno {
		t.Errorf("done %t, %+v, undone %+v", p.ends[0].done(), s.reno, was)
	}
}

// Some were late, and one among them was lost: that shows all the same, and halves the window.
func TestSpuriousRTO_OneLost(t *testing.T) {
	p, s := suspended(t, 50)
	p.inTransit[1] = append(p.inTransit[1][:10:10], p.inTransit[1][11:]...)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.reno.Window() > 60 || s.reno.Window() < 50 || s.lost != 1 {
		t.Errorf("%+v, %d lost", s.reno, s.lost)
	}
	p.settle()
	if n := p.ends[0].c.cfg.Counters.Retransmitted; n != 1 || !p.ends[0].done() {
		t.Errorf("%d retransmitted, done %t", n, p.ends[0].done())
	}
}

// Some were late, and came when the lane was held: what is beyond the credit then is kept, too, and
// nothing is retransmitted any more.
func TestSpuriousRTO_WhileTheLaneIsHeld(t *testing.T) {
	p, _ := suspended(t, 100)
	b := p.ends[1]
	b.holds = func(Lane) bool { return b.c.cfg.Counters.Delivered >= 5 }
	p.deliver(1)
	p.settle()
	b.holds = func(Lane) bool { return false }
	b.resume(Requests)
	p.settle()
	if a := p.ends[0]; !a.done() || b.c.cfg.Counters.BeyondWindow > 0 || a.c.cfg.Counters.Retransmitted > minWindow {
		t.Errorf("done %t: %+v, %+v", a.done(), *a.c.cfg.Counters, *b.c.cfg.Counters)
	}
}

// Some were late, after others had turned out to be lost: the RTO was right about the window,
// which is neither restored nor cut once more.
func TestSpuriousRTO_AfterALoss(t *testing.T) {
	p, s := suspended(t, 50)
	late := slices.Clone(p.inTransit[1][20:])
	p.inTransit[1] = nil
	p.send(0)
	p.inTransit[1] = p.inTransit[1][1:minWindow] // the first retransmission is lost
	p.now = p.now.Add(time.Millisecond)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	p.untilDue() // the first one has had time to come after all
	p.inTransit[1] = nil
	was := s.reno
	if was.UndoRTO(); was != s.reno {
		t.Fatal("no loss is known")
	}
	recoveryPoint := s.recoveryPoint
	p.inTransit[1] = late
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.reno.SlowStartThreshold() != was.SlowStartThreshold() || s.recoveryPoint != recoveryPoint || s.reno.Window() > was.Window() {
		t.Errorf("%+v until %d, was %+v until %d", s.reno, s.recoveryPoint, was, recoveryPoint)
	}
	p.settle()
	p.pass(time.Second)
	if !p.ends[0].done() {
		t.Error("not done")
	}
}

// The recovery that an RTO begins ends once all is acknowledged that had been sent by then.
func TestRTO_RecoveryPoint(t *testing.T) {
	p, s := suspended(t, 50)
	first, since := s.una, p.now
	p.inTransit[1] = nil
	p.send(0)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.una == first || s.reno.Phase() != congestion.RTORecovery || s.recoverySince != since {
		t.Errorf("%d acknowledged: phase %d since %v, want %v", s.una-first, s.reno.Phase(), s.recoverySince, since)
	}
	p.pass(time.Second)
	if !p.ends[0].done() || s.una-first != 50 || s.reno.Phase() != congestion.Open {
		t.Errorf("done %t, %d acknowledged: phase %d", p.ends[0].done(), s.una-first, s.reno.Phase())
	}
}
