package reliable

import (
	"slices"
	"testing"
	"time"
)

// stood returns two ends of which the second has stood still until the first one's timeout, with n frames on their way, and a rate
// of 100.
func stood(t *testing.T, n int) (p *pair, s *sender) {
	p = newPair(t, 120).open()
	a := p.ends[0]
	s = &a.c.lanes[Requests].sender
	s.cwnd, s.ssthresh = 100, 120
	for range n {
		a.write(p.now, Requests, 100)
	}
	a.c.Uncork(Requests)
	p.send(0)
	p.now = s.rtoDeadline
	a.advance(p.now)
	if s.cwnd != minWindow || s.lost != n {
		t.Fatalf("congestion %d, %d of %d lost", s.cwnd, s.lost, n)
	}
	return p, s
}

// Frames were late, and none was lost: their acknowledgement shows it, and things are as before.
func TestAcquit_OfAll(t *testing.T) {
	p, s := stood(t, 50)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.cwnd < 100 || s.ssthresh < 120 || !p.ends[0].done() || p.ends[0].c.Counters().Retransmitted > 0 {
		t.Errorf("%+v, %+v", s.congestionState, p.ends[0].c.Counters())
	}
	p.settle()
}

// Nor if some had been sent again by then: these do not tell, the others do. What is not acknowledged yet is not sent again.
func TestAcquit_OfSome(t *testing.T) {
	p, s := stood(t, 50)
	early, rest := p.air[1][:20], p.air[1][20:]
	p.air[1] = nil
	if p.send(0) != minWindow+1 {
		t.Fatalf("%q", p.on(1))
	}
	question := p.air[1][minWindow:]
	p.air[1] = slices.Concat(early, question)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	p.send(0)
	if n := p.ends[0].c.Counters().Retransmitted; n != minWindow || s.cwnd < 100 {
		t.Errorf("%d sent again, %+v", n, s.congestionState)
	}
	p.air[1] = append(p.air[1], rest...)
	p.settle()
	if n := p.ends[0].c.Counters().Retransmitted; n != minWindow || !p.ends[0].done() {
		t.Errorf("%d sent again, done %t", n, p.ends[0].done())
	}
}

// Frames were lost: that which was sent again is acknowledged, and shows nothing.
func TestAcquit_OfNone(t *testing.T) {
	p, s := stood(t, 50)
	p.air[1] = nil
	p.send(0)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.cwnd > 2*minWindow || s.ssthresh > 50 {
		t.Errorf("%+v", s.congestionState)
	}
	p.pass(time.Second)
	if !p.ends[0].done() || s.undo != (congestionState{}) {
		t.Errorf("done %t, before %+v", p.ends[0].done(), s.undo)
	}
}

// Some were late, and one among them was lost: that is found out all the same, and counts.
func TestAcquit_OfAllButOne(t *testing.T) {
	p, s := stood(t, 50)
	p.air[1] = append(p.air[1][:10:10], p.air[1][11:]...)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.cwnd > 60 || s.cwnd < 50 || s.lost != 1 {
		t.Errorf("%+v, %d lost", s.congestionState, s.lost)
	}
	p.settle()
	if n := p.ends[0].c.Counters().Retransmitted; n != 1 || !p.ends[0].done() {
		t.Errorf("%d sent again, done %t", n, p.ends[0].done())
	}
}

// Some were late, and then turned away, as the lane was held and there was no room to keep them: these go again as soon as there is
// credit, and not at the next timeout.
func TestAcquit_ButNotOfWhatWasTurnedAway(t *testing.T) {
	p, _ := stood(t, 100)
	b := p.ends[1]
	b.holds = func(Lane) bool { return b.c.Counters().Delivered >= 5 }
	p.deliver(1)
	if n := b.c.Counters().BeyondWindow; n == 0 {
		t.Fatal("all were kept")
	}
	p.settle()
	b.holds = func(Lane) bool { return false }
	b.resume(Requests)
	p.settle()
	if a := p.ends[0]; !a.done() {
		t.Errorf("not done: %+v, %+v", a.c.Counters(), b.c.Counters())
	}
}

// Some were late, after others had turned out to be lost: the timeout was right about the pace, which is not cut for them once more.
func TestAcquit_AfterALoss(t *testing.T) {
	p, s := stood(t, 50)
	late := slices.Clone(p.air[1][20:])
	p.air[1] = nil
	p.send(0)
	p.air[1] = p.air[1][1:minWindow] // the first is lost once more
	p.now = p.now.Add(time.Millisecond)
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.undo != (congestionState{}) {
		t.Fatal("nothing is known to be lost")
	}
	before := *s
	p.air[1] = late
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if s.ssthresh != before.ssthresh || s.recover != before.recover || s.cwnd > before.cwnd {
		t.Errorf("%+v until %d, was %+v until %d", s.congestionState, s.recover, before.congestionState, before.recover)
	}
	p.settle()
	p.pass(time.Second)
	if !p.ends[0].done() {
		t.Error("not done")
	}
}
