package reliable

import (
	"bytes"
	"testing"
	"time"
)

// A frame that Next returns and that cannot be sent comes again, of whatever kind.
func TestNext_ComesAgainUntilSent(t *testing.T) {
	p := newPair(t, 120)
	a, b := p.ends[0], p.ends[1]
	again := func(e *end, kind Kind) {
		t.Helper()
		var h Header
		first := bytes.Clone(e.next(p.now))
		if err := Parse(first, &h); err != nil || h.Kind != kind {
			t.Fatalf("%v, %+v, want a %v", err, h, kind)
		}
		if !bytes.Equal(first, e.next(p.now)) {
			t.Errorf("%v: then %x", h, e.next(p.now))
		}
	}
	a.write(p.now, Requests, 20)
	again(a, Hello)
	p.send(0)
	p.deliver(1)
	again(b, HelloAck)
	p.send(1)
	p.deliver(0)
	again(a, HelloAck)
	p.send(0)
	p.deliver(1)
	again(b, Ack)
	p.settle()
	a.write(p.now, Requests, 20)
	again(a, Data)
	p.settle()
}

// What was not sent is not counted as sent: Sent twice, or after something else has come.
func TestSent_OncePerFrame(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	p.send(0)
	a.c.Sent(p.now)
	a.check()
	p.deliver(1)
	p.send(1)

	at, _ := a.c.Deadline()
	p.now = at
	a.advance(at)
	if a.c.NextFrame(p.now) == nil {
		t.Fatal("not sent again")
	}
	p.deliver(0) // meanwhile it is acknowledged
	a.c.Sent(p.now)
	a.check()
	p.ok()
	p.talk(0)
}

// Whoever has something to do at once has no deadline for it: no time is past until it is done.
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
	p.air[1] = p.air[1][:1] // nobody waits for its acknowledgement
	p.deliver(1)
	p.now = p.now.Add(ackDelay)
	b.advance(p.now)
	future(b, "an acknowledgement is to be sent")
	p.pass(time.Second)
}

// A peer that does not answer is given up, whatever others send meanwhile in its name.
func TestGreeting_EndsAmongStrayFrames(t *testing.T) {
	p := newPair(t, 120)
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	var b [ackLen]byte
	(&Header{Kind: Data, Src: 77, Dst: 78}).put(b[:])
	for began := p.now; a.downs == 0; {
		p.send(0)
		p.now = p.now.Add(time.Millisecond)
		a.hear(p.now, b[:])
		if at, ok := a.c.Deadline(); !ok || !p.now.Before(at) {
			a.advance(p.now)
		}
		if p.now.Sub(began) > DefaultPeerTimeout+2*maxRTO {
			t.Fatalf("not given up after %v", p.now.Sub(began))
		}
	}
}

// Frames that were gathered and then refused come again, each once, with the acknowledgements that they had; they do not
// count as sent.
func TestRefused_ComesAgain(t *testing.T) {
	p := newPair(t, 120).open()
	a, b := p.ends[0], p.ends[1]
	for range 10 {
		b.write(p.now, Replies, 100)
	}
	p.send(1)
	p.air[0] = p.air[0][:9]
	p.deliver(0) // it owes an acknowledgement of replies
	for range 5 {
		a.write(p.now, Requests, 100)
	}
	was := a.c.Counters()
	var frames [MaxBatch][]byte
	n := a.c.NextBatch(p.now, &frames)
	if n != 5 {
		t.Fatalf("%d frames", n)
	}
	a.c.Refused(0, n)
	a.check()
	if is := a.c.Counters(); is != was {
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

// A control frame that was refused comes again, of whatever kind.
func TestRefused_Control(t *testing.T) {
	p := newPair(t, 120)
	a, b := p.ends[0], p.ends[1]
	again := func(e *end) {
		t.Helper()
		var frames [MaxBatch][]byte
		n := e.c.NextBatch(p.now, &frames)
		if n == 0 {
			t.Fatal("nothing to send")
		}
		was, counted := bytes.Clone(frames[0][room:]), e.c.Counters()
		e.c.Refused(0, n)
		if n = e.c.NextBatch(p.now, &frames); n == 0 || !bytes.Equal(was, frames[0][room:]) || e.c.Counters() != counted {
			t.Fatalf("%x, then %d frames, %x", was, n, frames[0])
		}
		p.air[1-e.node] = append(p.air[1-e.node], bytes.Clone(frames[0][room:]))
		p.deliver(1 - e.node)
	}
	a.write(p.now, Requests, 20)
	again(a) // hello
	again(b) // welcome
	again(a) // welcome
	p.settle()
	p.pass(time.Second)
	h := p.between(0)
	h.Kind, h.Credit, h.SACK = Ack, 0, 1
	p.handle(0, h, nil)
	a.write(p.now, Requests, 20)
	at, _ := a.c.Deadline()
	p.now = at
	a.advance(at)
	again(a) // a question
	again(b) // its answer
	p.settle()
	if !a.done() {
		t.Error("not done")
	}
}
