package reliable

import (
	"cmp"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// A path becomes slower than the retransmission timeout, for a program that sends some frames and
// waits for them: all of them are retransmitted before they are acknowledged, and none gives a sample
// of the round-trip time. It is measured all the same, and then nothing is sent twice; and again
// when the path is as short as before.
func TestPath_ThatChangesIsMeasured(t *testing.T) {
	n := newIncast(fastLine, 1, Window, 1)
	s := n.senders[0]
	s.round = 5
	until := n.start
	for _, trip := range []time.Duration{40 * time.Microsecond, 10 * time.Millisecond, 80 * time.Millisecond, 40 * time.Microsecond} {
		n.hop = trip / 4
		until = until.Add(20 * max(trip, 10*time.Millisecond))
		n.runUntil(t, until)
		before := s.c.cfg.Counters.Retransmitted
		until = until.Add(20 * trip)
		n.runUntil(t, until)
		if is := s.c.rtt.Smoothed(); is < trip || is > trip+trip/4+20*time.Microsecond {
			t.Errorf("a round trip of %v is measured as %v", trip, is)
		}
		if again := s.c.cfg.Counters.Retransmitted - before; again > 0 {
			t.Errorf("a round trip of %v: %d frames sent twice", trip, again)
		}
	}
}

// A path whose round trip is longer than maxRTO, and not than an eighth of the peer timeout, is used as
// a shorter one is: nothing is sent twice, nobody is asked, and each round trip brings a few frames, or half a window.
func TestPath_LongerThanTheBackoff(t *testing.T) {
	for _, trip := range []time.Duration{90 * time.Millisecond, 120 * time.Millisecond, 200 * time.Millisecond, 240 * time.Millisecond} {
		for _, round := range []int{0, 8, Window} {
			n := newIncast(fastLine, 1, Window, 1)
			s := n.senders[0]
			s.round = round
			n.hop = trip / 4
			until := n.start.Add(40 * trip)
			n.runUntil(t, until)
			before := *s.c.cfg.Counters
			const trips = 50
			n.runUntil(t, until.Add(trips*trip))
			is := s.c.cfg.Counters
			if again, acks := is.Retransmitted-before.Retransmitted, is.Acks-before.Acks; again > 0 || acks > 0 {
				t.Errorf("a round trip of %v, %d at once: %d frames sent twice, %d probes", trip, round, again, acks)
			}
			least := 9 * trips / 10 * min(cmp.Or(round, Window), Window/2)
			if sent := int(is.Sent - before.Sent); sent < least {
				t.Errorf("a round trip of %v, %d at once: %d frames in %d round trips, want %d", trip, round, sent, trips, least)
			}
		}
	}
}

// However long the path is, or seemed to be as its peer stood still, its silence is noticed within
// two eighths of the peer timeout after it.
func TestPath_SilenceBehindALongOne(t *testing.T) {
	for _, trip := range []time.Duration{time.Millisecond, 90 * time.Millisecond, 120 * time.Millisecond, 240 * time.Millisecond, time.Minute} {
		p := newPair(t, 120).open()
		a := p.ends[0]
		a.c.rtt = congestion.RTT{}
		for range 20 {
			a.c.rtt.Update(trip)
		}
		began := p.now
		p.cut(0)
		if took := p.now.Sub(began); a.failures != 1 || took < DefaultPeerTimeout || took > DefaultPeerTimeout*10/8 {
			t.Errorf("a round trip of %v: %d failures, after %v", trip, a.failures, took)
		}
	}
}

// The backoff of the RTO ends with progress and a sample, in either order, and not with one of them.
func TestPath_RFC6298_5_7_BackoffNeedsASample(t *testing.T) {
	p := newPair(t, 120).open()
	frames := p.apart(3)
	s := &p.ends[0].c.lanes[Requests].sender
	for s.backoff < 2 {
		p.untilDue()
	}
	p.inTransit[1] = frames[:1] // the probes are lost, and what was retransmitted
	p.deliver(1)
	p.ends[1].c.lanes[Requests].ackNow = true
	p.exchange()
	if s.una == s.nxt || s.backoff != 2 {
		t.Fatalf("progress without a sample: backoff %d", s.backoff)
	}
	p.settle()
	p.apart(0)
	if s.backoff != 0 {
		t.Errorf("progress and a sample: backoff %d", s.backoff)
	}
}

// Answers to the last eight probes are samples, each once; older ones and others are not.
func TestPath_AnswersToEarlierProbes(t *testing.T) {
	p := newPair(t, 120).open()
	p.apart(1)
	s := &p.ends[0].c.lanes[Requests].sender
	const probes = len(probeLog{}) + 1
	var sent [probes + 1]monotime.Time
	first := s.probeID + 1
	for i := range probes {
		p.now = p.now.Add(time.Microsecond)
		s.queueProbe()
		s.onProbeSent(p.now)
		sent[i] = p.now
	}
	var rtt congestion.RTT
	answer := func(id uint32) bool {
		rtt = congestion.RTT{}
		h := Header{Kind: Ack, Sequence: id, Ack: s.una, Credit: Window}
		s.onProbeAnswer(&h, p.now, &rtt, 0)
		return rtt.HasSample()
	}
	if answer(first) || answer(0) || answer(first+uint32(probes)) {
		t.Error("the answer to a probe that is not known is a sample")
	}
	for i := probes - 1; i > 0; i-- {
		if !answer(first+uint32(i)) || rtt.Smoothed() != max(p.now.Sub(sent[i]), 1) {
			t.Errorf("the answer to probe %d of %d: %v, want %v", i, probes, rtt.Smoothed(), p.now.Sub(sent[i]))
		}
		if answer(first + uint32(i)) {
			t.Errorf("the answer to probe %d counts twice", i)
		}
	}
}

// A retransmission is lost, too: that is another sign of congestion, and the window is halved once
// more. Another frame of the first flight is none.
func TestCongestion_RFC5681_4_3_LostRetransmission(t *testing.T) {
	p := newPair(t, 120).open()
	s := &p.ends[0].c.lanes[Requests].sender
	s.window(100, 100)
	frames := p.apart(20)
	window := s.reno.Window()
	deliver := func(frames [][]byte) int {
		p.inTransit[1] = frames
		p.now = p.now.Add(trip / 2)
		p.deliver(1)
		p.send(1)
		p.now = p.now.Add(trip / 2)
		p.deliver(0)
		return s.reno.Window()
	}
	if w := deliver(frames[1:10]); w >= window {
		t.Fatalf("one frame is lost: the window is %d, was %d", w, window)
	}
	window = s.reno.Window()
	p.send(0)
	p.inTransit[1] = nil // the retransmission
	p.now = p.now.Add(trip)
	if w := deliver(frames[11:]); w < window || s.lost != 1 {
		t.Errorf("another frame of that flight is lost: the window is %d, was %d", w, window)
	}
	p.send(0)
	again := p.inTransit[1]
	p.inTransit[1] = nil
	if w := deliver(again); w >= window || s.lost != 1 {
		t.Errorf("the retransmission of the first is lost: the window is %d, was %d, %d lost", w, window, s.lost)
	}
	p.settle()
	if !p.ends[0].done() || s.backoff > 0 {
		t.Errorf("done %t, %d RTOs", p.ends[0].done(), s.backoff)
	}
}
