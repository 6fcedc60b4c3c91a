package reliable

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A frame that could not be sent comes again, of whatever kind.
func TestRefused_ComesAgain(t *testing.T) {
	p := newPair(t, 120)
	a, b := p.ends[0], p.ends[1]
	again := func(e *end, kind Kind) {
		t.Helper()
		var h Header
		var first []byte
		for range 3 {
			frames, was := e.next(p.now), *e.c.cfg.Counters
			if len(frames) != 1 {
				t.Fatalf("%d frames, want a %v", len(frames), kind)
			}
			if err := Parse(frames[0][headroom:], &h); err != nil || h.Kind != kind {
				t.Fatalf("%v, %+v, want a %v", err, h, kind)
			}
			if first == nil {
				first = bytes.Clone(frames[0])
			}
			if !bytes.Equal(first, frames[0]) {
				t.Errorf("%v: %x, then %x", kind, first, frames[0])
			}
			e.c.Refused(0, 1)
			if is := *e.c.cfg.Counters; is.Sent+is.Acks >= was.Sent+was.Acks && kind <= Ack {
				t.Errorf("%v: counts as sent: %+v", kind, is)
			}
		}
		p.send(e.node)
		p.deliver(1 - e.node)
	}
	a.write(p.now, Requests, 20)
	again(a, Hello)
	again(b, HelloAck)
	again(a, HelloAck) // and the data behind it
	again(b, Ack)
	p.settle()
	a.write(p.now, Requests, 20)
	again(a, Data)
	p.settle()
	p.pass(time.Second)

	h := p.between(0)
	h.Kind, h.Credit, h.SACK = Ack, 0, SACK{1}
	p.handle(0, h, nil)
	a.write(p.now, Requests, 20)
	at, _ := a.c.Deadline()
	p.now = at
	a.advance(at)
	again(a, Ack) // a probe
	again(b, Ack) // its answer
	p.settle()
	if !a.done() {
		t.Error("not done")
	}
	a.c.Close()
	again(a, Bye)
}

// An end that has something to send at once has no deadline for it: Deadline is never past.
func TestDeadline_IsNotPast(t *testing.T) {
	p := newPair(t, 120)
	a, b := p.ends[0], p.ends[1]
	future := func(e *end, what string) {
		t.Helper()
		if at, ok := e.c.Deadline(); ok && !p.now.Before(at) {
			t.Errorf("%s: at %v the deadline is %v", what, p.now.Since(), at.Since())
		}
	}
	a.write(p.now, Requests, 20)
	future(a, "a hello is to be sent")
	p.now = p.now.Add(initialRTO)
	a.advance(p.now)
	future(a, "a hello is to be sent, late")
	p.settle()

	for range 2 {
		a.write(p.now, Requests, 100)
	}
	p.send(0)
	p.inTransit[1] = p.inTransit[1][:1] // it requests no acknowledgement
	p.deliver(1)
	p.now = p.now.Add(ackDelay)
	b.advance(p.now)
	future(b, "an acknowledgement is to be sent")
	p.pass(time.Second)
}

// A peer that does not answer is silent, whatever others send meanwhile in its name.
func TestHandshake_EndsAmongStaleFrames(t *testing.T) {
	p := newPair(t, 120)
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	var b [maxAckLen]byte
	(&Header{Kind: Data, Src: 77, Dst: 78}).put(b[:])
	for began := p.now; a.failures == 0; {
		p.send(0)
		p.now = p.now.Add(time.Millisecond)
		a.receive(p.now, b[:])
		if at, ok := a.c.Deadline(); !ok || !p.now.Before(at) {
			a.advance(p.now)
		}
		if p.now.Sub(began) > DefaultPeerTimeout+2*maxRTO {
			t.Fatalf("still waiting after %v", p.now.Sub(began))
		}
	}
}

// Hellos of the peer's incarnation show that it is there, though it has lost all data; those of any
// other prove nothing.
func TestSilence_HelloOfWhom(t *testing.T) {
	for _, x := range []struct {
		src  uint32
		want Event
	}{{2, DataLost}, {77, PeerSilent}} {
		p := newPair(t, 120).open()
		c := p.ends[0].c
		p.ends[0].write(p.now, Requests, 20)
		event := Nothing
		for began := p.now; event == Nothing; event = c.Advance(p.now) {
			p.send(0)
			p.inTransit[1] = nil
			at, ok := c.Deadline()
			if !ok || at.Sub(began) > 2*DefaultPeerTimeout {
				t.Fatalf("hellos of %d: no end after %v", x.src, at.Sub(began))
			}
			p.now = at
			c.Handle(p.now, &Header{Kind: Hello, Src: x.src, Sequence: 5}, nil)
		}
		if event != x.want {
			t.Errorf("hellos of %d: event %d, want %d", x.src, event, x.want)
		}
	}
}

// The frames of a batch that was refused come again, each once, with the acknowledgements that
// they had.
func TestRefused_Batch(t *testing.T) {
	p := newPair(t, 120).open()
	a, b := p.ends[0], p.ends[1]
	for range 5 {
		b.write(p.now, Replies, 100)
	}
	p.send(1)
	p.inTransit[0] = p.inTransit[0][:4]
	p.deliver(0) // replies are to be acknowledged
	for range 5 {
		a.write(p.now, Requests, 100)
	}
	was := *a.c.cfg.Counters
	var frames [MaxBatch][]byte
	n := a.c.NextBatch(p.now, &frames)
	if n != 5 {
		t.Fatalf("%d frames", n)
	}
	a.c.Refused(0, n)
	a.check()
	if is := *a.c.cfg.Counters; is != was {
		t.Errorf("%+v, then %+v", was, is)
	}
	p.send(0)
	p.deliver(1)
	if s := p.streams[a.out[Requests]]; s.got != s.sent {
		t.Errorf("%+v", s)
	}
	if s := &b.c.lanes[Replies].sender; s.una != s.nxt-1 {
		t.Errorf("replies are acknowledged up to %d of %d", s.una, s.nxt)
	}
	p.pass(time.Second)
}

// Frames that are sent together have a copy of the first one's header: it requests an acknowledgement,
// and they do not, but for one in each quarter of a window.
func TestStream_OneFrameOfManyRequests(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	s := &a.c.lanes[Requests].sender
	const interval = initialWindow / acksPerWindow
	for range 3 * interval {
		a.write(p.now, Requests, 100)
	}
	limit := s.creditLimit
	s.creditLimit = s.nxt + interval - 1
	if p.send(0); strings.Contains(p.describe(1), "!") {
		t.Errorf("a request in %q", p.describe(1))
	}
	s.creditLimit = limit
	p.deliver(1)
	p.send(0)
	for i, frame := range strings.Fields(p.describe(1)) {
		if is := strings.HasSuffix(frame, "!"); is != (i%interval == 0) {
			t.Errorf("frame %d, %s: it requests an acknowledgement: %t", i, frame, is)
		}
	}
	p.settle()
}
