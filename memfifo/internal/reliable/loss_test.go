package reliable

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// A frame that DupThresh others have overtaken is retransmitted at once, even with a full
// congestion window; a frame that two have overtaken is not.
func TestLost_FastRetransmission(t *testing.T) {
	for _, window := range []int{8, 64, Window} {
		p := newPair(t, 120).open()
		a := p.ends[0]
		a.c.lanes[0].window(window, Window)
		for range window {
			a.write(p.now, Requests, 100)
		}
		p.send(0)
		frames := p.inTransit[1]
		lost, rest := frames[0], frames[congestion.DupThresh:]
		p.inTransit[1] = frames[1:congestion.DupThresh]
		p.deliver(1)
		p.send(1)
		p.deliver(0)
		if p.send(0); len(p.inTransit[1]) > 0 {
			t.Errorf("window %d: sends %q after %d", window, p.describe(1), congestion.DupThresh-1)
		}
		p.inTransit[1] = rest[:1]
		p.deliver(1)
		p.send(1)
		p.deliver(0)
		p.send(0)
		if len(p.inTransit[1]) == 0 || string(p.inTransit[1][0][HeaderLen:]) != string(lost[HeaderLen:]) {
			t.Errorf("window %d: sends %q after %d", window, p.describe(1), congestion.DupThresh)
		}
		if c := a.c.lanes[0].reno.Window(); c > window/2+1 {
			t.Errorf("window %d: cwnd %d", window, c)
		}
		p.inTransit[1] = append(p.inTransit[1], rest[1:]...)
		p.settle()
		p.pass(time.Second)
		if !a.done() || a.c.cfg.Counters.Retransmitted != 1 {
			t.Errorf("window %d: done %t, %+v", window, a.done(), *a.c.cfg.Counters)
		}
	}
}

// The congestion window is halved for losses, once in each recovery, is minWindow after an RTO, and
// grows back.
func TestLost_Congestion(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	s := &a.c.lanes[0].sender
	s.window(100, Window)
	burst := func(lost ...int) {
		for range 60 {
			a.write(p.now, Requests, 100)
		}
		p.send(0)
		for i, k := range lost {
			p.inTransit[1] = append(p.inTransit[1][:k-i], p.inTransit[1][k-i+1:]...)
		}
		p.deliver(1)
		p.send(1)
		p.deliver(0)
	}
	burst(5, 10, 20)
	if s.reno.Window() < 45 || s.reno.Window() > 55 {
		t.Errorf("after three losses in a window: %d", s.reno.Window())
	}
	p.pass(time.Second)
	for range 100 {
		burst()
		p.pass(time.Millisecond)
	}
	if s.reno.Window() < 2*50 {
		t.Errorf("congestion has grown back to %d", s.reno.Window())
	}
	a.write(p.now, Requests, 100)
	p.send(0)
	p.inTransit[1] = nil
	p.after(0, baseRTO(&a.c.rtt, maxRTO))
	if s.reno.Window() != 4 { // minWindow
		t.Errorf("after a timeout: %d", s.reno.Window())
	}
}

// The RTO doubles without acknowledgements, up to maxRTO, and is as before after the next one. It
// follows the round-trip time, also where that is longer than maxRTO.
func TestLost_Timeouts(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	p.send(0)
	timeout := baseRTO(&a.c.rtt, maxRTO)
	for range 8 {
		p.inTransit[1] = nil
		p.after(0, timeout)
		timeout = min(2*timeout, maxRTO)
	}
	p.settle()
	a.write(p.now, Requests, 20)
	p.send(0)
	p.inTransit[1] = nil
	p.after(0, baseRTO(&a.c.rtt, maxRTO))
	p.settle()

	for _, trip := range []time.Duration{20 * time.Microsecond, 5 * time.Millisecond, 30 * time.Millisecond, 200 * time.Millisecond, 20 * time.Microsecond} {
		for range 100 {
			a.write(p.now, Requests, 20)
			p.send(0)
			p.now = p.now.Add(trip)
			p.deliver(1)
			p.send(1)
			p.deliver(0)
		}
		is := baseRTO(&a.c.rtt, a.c.cfg.rtoLimit())
		if is < minRTO || is < trip || is > trip+trip/2+minRTO {
			t.Errorf("round trip %v: timeout %v", trip, is)
		}
	}
}

// Acked: all that was reserved before a mark is acknowledged; later records need not be. Available
// is what fits.
func TestMark_AndRoom(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0].c
	if m := a.Mark(Requests); !a.Acked(Requests, m) {
		t.Error("nothing was reserved, and is not reached")
	}
	if n := a.Available(Requests, 1); n != 100 {
		t.Errorf("room of %d", n)
	}
	p.ends[0].write(p.now, Requests, 60)
	if n, m := a.Available(Requests, 40), a.Available(Requests, 41); n != 40 || m != 100 {
		t.Errorf("room of %d, %d", n, m)
	}
	mark := a.Mark(Requests)
	p.send(0)
	p.ends[0].write(p.now, Requests, 60)
	if a.Acked(Requests, mark) {
		t.Error("reached")
	}
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if !a.Acked(Requests, mark) || a.Acked(Requests, a.Mark(Requests)) || a.AllAcked(Requests) {
		t.Error("not reached, or too much")
	}
	p.settle()
	n := 0
	for ; a.Available(Requests, 60) > 0; n++ {
		if !p.ends[0].write(p.now, Requests, 60) {
			t.Fatal("there was room")
		}
	}
	if n != Window || a.Available(Requests, 1) != 40 || p.ends[0].write(p.now, Requests, 60) {
		t.Errorf("%d frames, room of %d", n, a.Available(Requests, 1))
	}
	if p.ends[0].write(p.now, Replies, 60); a.Available(Replies, 1) != 40 {
		t.Error("the other lane has no room")
	}
	p.pass(time.Second)
	if !a.AllAcked(Requests) || !a.AllAcked(Replies) {
		t.Error("not done")
	}
}

// Without a sample the RTO is the initial one, whatever the least is; with one it has both bounds.
// The upper one is what the peer timeout allows: an eighth of it, and not less than a tenth of a second.
func TestRTO_RFC6298_2(t *testing.T) {
	for _, x := range []struct {
		samples     []time.Duration
		peerTimeout time.Duration
		want        time.Duration
	}{
		{nil, 2 * time.Second, 10 * time.Millisecond},
		{[]time.Duration{time.Microsecond}, 2 * time.Second, 2 * time.Millisecond},
		{[]time.Duration{2 * time.Millisecond}, 2 * time.Second, 2*time.Millisecond + 4*time.Millisecond + 500*time.Microsecond},
		{[]time.Duration{60 * time.Millisecond}, 2 * time.Second, 180*time.Millisecond + 500*time.Microsecond},
		{[]time.Duration{time.Second}, 2 * time.Second, 250 * time.Millisecond},
		{[]time.Duration{time.Second}, 20 * time.Second, 2500 * time.Millisecond},
		{[]time.Duration{time.Second}, 200 * time.Millisecond, 100 * time.Millisecond},
	} {
		p := newPair(t, 120)
		for _, e := range p.ends {
			e.c.cfg.PeerTimeout = x.peerTimeout
			e.c.resetLanes()
		}
		p.open()
		a := p.ends[0]
		a.c.rtt = congestion.RTT{}
		for _, sample := range x.samples {
			a.c.rtt.Update(sample)
		}
		a.write(p.now, Requests, 20)
		p.send(0)
		if got := a.c.lanes[Requests].rtoDeadline.Sub(p.now); got != x.want {
			t.Errorf("samples %v, peer timeout %v: the RTO is %v, want %v", x.samples, x.peerTimeout, got, x.want)
		}
	}
}

// What was acknowledged tells that frames sent before it are late, but a retransmission that was
// acknowledged sooner than any round trip takes does not: the first transmission has come.
func TestNewest_NotOfAnEarlierTransmission(t *testing.T) {
	const least = 10 * time.Millisecond
	var rtt congestion.RTT
	rtt.Update(3 * least)
	rtt.Update(least)
	begin := monotime.At(time.Second)
	for _, c := range []struct {
		name  string
		sends int
		at    time.Duration // when it was sent, after the newest
		trip  time.Duration
		takes bool
	}{
		{"first transmission", 1, 1, least, true},
		{"at the same time", 1, 0, least, true},
		{"sent before the newest", 1, -1, least, false},
		{"retransmission, as soon as can be", 2, 1, least, true},
		{"retransmission, too soon", 2, 1, least - 1, false},
		{"second retransmission, too soon", 3, 1, least - 1, false},
	} {
		was := newest{sentAt: begin, sequence: 7, trip: 2 * least}
		s := sender{newest: was}
		p := sentPacket{sends: c.sends, sentAt: begin.Add(c.at)}
		want := was
		if c.takes {
			want = newest{p.sentAt, 9, c.trip}
		}
		if s.onDelivered(9, &p, c.trip, &rtt); s.newest != want {
			t.Errorf("%s: the newest is %+v, want %+v", c.name, s.newest, want)
		}
	}
}
