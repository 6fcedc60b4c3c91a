package reliable

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// trip is a round-trip time, and half of it one way.
const trip = 40 * time.Microsecond

// apart has end 0 send records of a frame each, once its round-trip time is known, and returns their
// frames.
func (p *pair) apart(n int) [][]byte {
	a := p.ends[0]
	for range 50 {
		a.write(p.now, Requests, 100)
		p.send(0)
		p.exchange()
	}
	for range n {
		a.write(p.now, Requests, 100)
	}
	a.c.Uncork(Requests)
	p.send(0)
	frames := p.inTransit[1]
	p.inTransit[1] = nil
	return frames
}

// exchange delivers what is in transit to end 1, and its answer, each half a round trip later.
func (p *pair) exchange() {
	p.now = p.now.Add(trip / 2)
	p.deliver(1)
	p.send(1)
	p.now = p.now.Add(trip / 2)
	p.deliver(0)
	p.send(0)
}

// untilDue lets time pass to the next deadline of end 0, and has it do what is due.
func (p *pair) untilDue() monotime.Time {
	at, ok := p.ends[0].c.Deadline()
	if !ok {
		p.t.Fatal("no deadline")
	}
	p.now = at
	p.ends[0].advance(at)
	p.send(0)
	return at
}

// The last frame is lost: a probe a little more than a round trip later finds out, and the frame is
// there after three round trips and the timer's granularity, and not after the RTO.
func TestTail_RFC8985_7_LastFrameLost(t *testing.T) {
	for _, frames := range []int{1, 2, 5, 40} {
		p := newPair(t, 120).open()
		inTransit := p.apart(frames)
		began, s := p.now, &p.ends[0].c.lanes[Requests].sender
		p.inTransit[1] = inTransit[:frames-1]
		if frames > 1 {
			p.exchange()
		}
		window := s.reno.Window()
		p.untilDue()
		p.want(1, "ack!")
		if p.exchange(); s.lost+s.inFlight != 1 || len(p.inTransit[1]) != 1 {
			t.Fatalf("%d frames: behind the answer: %q", frames, p.describe(1))
		}
		p.now = p.now.Add(trip / 2)
		p.deliver(1)
		if took, most := p.now.Sub(began), 4*trip+timerGranularity; took > most {
			t.Errorf("%d frames: the last one came after %v, want %v", frames, took, most)
		}
		if got := p.ends[1].c.cfg.Counters.Delivered; got != uint64(51+frames) {
			t.Errorf("%d frames: %d delivered", frames, got)
		}
		if frames == 40 && s.reno.Window() >= window {
			t.Errorf("the loss has left the window at %d, was %d", s.reno.Window(), window)
		}
		p.settle()
		if n := p.ends[0].c.cfg.Counters.Retransmitted; n != 1 || s.backoff > 0 {
			t.Errorf("%d frames: %d retransmitted, %d RTOs", frames, n, s.backoff)
		}
	}
}

// A peer that is slow to acknowledge gets probes at intervals that double, and no data again, until
// the RTO.
func TestTail_SlowPeerGetsNoDataTwice(t *testing.T) {
	p := newPair(t, 120).open()
	frames := p.apart(3)
	s := &p.ends[0].c.lanes[Requests].sender
	began := p.now
	last, probes := began, 0
	for s.backoff == 0 {
		at, _ := p.ends[0].c.Deadline()
		if s.rtoDeadline == at {
			break
		}
		if interval := at.Sub(last); interval < probeTimeout(&p.ends[0].c.rtt)<<probes {
			t.Errorf("probe %d after %v", probes, interval)
		}
		last = p.untilDue()
		probes++
	}
	if n := p.ends[0].c.cfg.Counters.Retransmitted; n > 0 || probes < 3 || probes > 7 {
		t.Errorf("%d retransmitted, %d probes", n, probes)
	}
	p.inTransit[1] = append(frames, p.inTransit[1]...)
	p.exchange()
	p.settle()
	if n := p.ends[0].c.cfg.Counters.Retransmitted; n > 0 || !p.ends[0].done() {
		t.Errorf("%d retransmitted, done %t", n, p.ends[0].done())
	}
}

// An acknowledgement from before the probe does not count as its answer: nothing is retransmitted.
func TestTail_OnlyTheAnswerCounts(t *testing.T) {
	p := newPair(t, 120).open()
	frames := p.apart(5)
	p.inTransit[1] = frames[:2]
	p.deliver(1)
	p.ends[1].c.lanes[Requests].ackNow = true
	p.send(1) // on its way
	p.untilDue()
	probe := p.inTransit[1]
	p.inTransit[1] = nil
	p.deliver(0)
	p.send(0)
	if n := p.ends[0].c.cfg.Counters.Retransmitted; n > 0 {
		t.Errorf("%d retransmitted for an old acknowledgement", n)
	}
	p.inTransit[1] = append(frames[2:3:3], probe...)
	p.exchange()
	if n := p.ends[0].c.cfg.Counters.Retransmitted; n != 2 {
		t.Errorf("%d retransmitted, want the two that the answer lacks", n)
	}
	answer := Header{Kind: Ack, Src: 2, Dst: 1, Credit: Window, Ack: p.ends[0].c.lanes[0].una, Sequence: p.ends[0].c.lanes[0].probeID}
	p.handle(0, answer, nil) // once more
	p.send(0)
	if n := p.ends[0].c.cfg.Counters.Retransmitted; n != 2 {
		t.Errorf("%d retransmitted, the answer having come twice", n)
	}
	p.settle()
}

// Data and probes of the peer have numbers of their own: one that happens to be a probe's does not
// make an answer of what was on its way before.
func TestTail_NumbersOfDataAndProbesAreNoAnswers(t *testing.T) {
	for _, kind := range []Kind{Data, Ack} {
		p := newPair(t, 120).open()
		frames := p.apart(5)
		p.untilDue()
		p.want(1, "ack!")
		s := &p.ends[0].c.lanes[Requests].sender
		h := p.between(0)
		h.Kind, h.AckNow, h.Sequence, h.Ack = kind, kind == Ack, s.probeID, s.una+2
		if h.Kind == Data && h.Sequence != p.ends[0].c.lanes[Requests].receiver.nxt {
			t.Fatalf("the peer's next data is %d, the probe %d", p.ends[0].c.lanes[Requests].receiver.nxt, h.Sequence)
		}
		probe := p.inTransit[1]
		p.inTransit[1] = nil
		p.handle(0, h, nil)
		if s.inFlight != 3 || s.lost != 0 {
			t.Errorf("%v: %d in flight, %d lost; want 3 and none", kind, s.inFlight, s.lost)
		}
		p.inTransit[1] = append(frames, probe...)
		p.pass(time.Second)
		if n := p.ends[0].c.cfg.Counters.Retransmitted; n > 0 || !p.ends[0].done() {
			t.Errorf("%v: %d retransmitted, done %t", kind, n, p.ends[0].done())
		}
	}
}

// A frame that was overtaken has come after all: what is sent long after that gets its own time.
func TestTail_ReorderingLeavesNothing(t *testing.T) {
	p := newPair(t, 120).open()
	frames := p.apart(2)
	p.inTransit[1] = frames[1:]
	p.exchange()
	p.inTransit[1] = frames[:1]
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	if !p.ends[0].done() {
		t.Fatal("not all is acknowledged")
	}
	p.now = p.now.Add(time.Second)
	p.ends[0].write(p.now, Requests, 100)
	p.ends[0].c.Uncork(Requests)
	p.send(0)
	if at, ok := p.ends[0].c.Deadline(); !ok || at.Before(p.now.Add(trip)) {
		t.Errorf("the deadline is %v from now, the round trip %v", at.Sub(p.now), trip)
	}
}

// Of two and of three frames the first is lost (RFC 8985 §6.2): it is retransmitted a quarter of a round trip after
// the others' acknowledgement, without a probe; if it comes meanwhile it was only late.
func TestTail_EarlyRetransmit(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, n := range []int{2, 3} {
			p := newPair(t, 120).open()
			frames := p.apart(n)
			p.inTransit[1] = frames[1:]
			p.exchange()
			acked, want := p.now, uint64(1)
			if late {
				p.inTransit[1], want = frames[:1], 0
				p.deliver(1)
				p.send(1)
				p.deliver(0)
			} else if wait := p.untilDue().Sub(acked); wait > max(trip/4, timerGranularity)+1 {
				t.Errorf("%d frames: retransmitted after %v", n, wait)
			}
			p.exchange()
			p.pass(time.Second)
			if is := p.ends[0].c.cfg.Counters.Retransmitted; is != want || !p.ends[0].done() {
				t.Errorf("%d frames, late %t: %d retransmitted, done %t", n, late, is, p.ends[0].done())
			}
		}
	}
}

// A window that is not used does not grow, and decays to the initial one; one that is used grows.
func TestValidation_RFC7661_4(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	s := &a.c.lanes[Requests].sender
	burst := func(times, frames int) {
		for range times {
			for range frames {
				a.write(p.now, Requests, 100)
			}
			a.c.Uncork(Requests)
			p.send(0)
			p.exchange()
			p.settle()
		}
	}
	s.window(64, Window)
	burst(100, 8)
	if w := s.reno.Window(); w != 64 {
		t.Errorf("8 frames at a time: the window is %d, want 64", w)
	}
	burst(100, 60)
	if w := s.reno.Window(); w < 80 || w > 2*60+60 {
		t.Errorf("60 frames at a time: the window is %d, want about twice that", w)
	}
	s.window(initialWindow, Window)
	s.reno.OnAck(Window - initialWindow)
	s.validatedAt = p.now
	p.now = p.now.Add(299 * time.Millisecond) // nonValidated is 300
	if burst(1, 1); s.reno.Window() != Window {
		t.Errorf("a short pause leaves a window of %d", s.reno.Window())
	}
	p.now = p.now.Add(2 * time.Millisecond)
	if burst(1, 1); s.reno.Window() != Window/2 || s.reno.SlowStartThreshold() < Window*3/4 {
		t.Errorf("a pause leaves a window of %d, threshold %d", s.reno.Window(), s.reno.SlowStartThreshold())
	}
	p.now = p.now.Add(time.Hour)
	if burst(1, 1); s.reno.Window() != initialWindow {
		t.Errorf("a long pause leaves a window of %d", s.reno.Window())
	}
}
