package reliable

import (
	"bytes"
	"testing"
	"time"
)

// A frame that Next returns and that cannot be sent comes again, of whatever kind.
func TestNext_ComesAgainUntilSent(t *testing.T) {
	p := newPair(t, 128)
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
	again(b, Welcome)
	p.send(1)
	p.deliver(0)
	again(a, Welcome)
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
	p := newPair(t, 128).open()
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
	if a.c.Next(p.now) == nil {
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
	p := newPair(t, 128)
	a, b := p.ends[0], p.ends[1]
	future := func(e *end, what string) {
		t.Helper()
		if at, ok := e.c.Deadline(); ok && !p.now.Before(at) {
			t.Errorf("%s: at %v the deadline is %v", what, p.now.Since(), at.Since())
		}
	}
	a.write(p.now, Requests, 20)
	future(a, "a hello is to be sent")
	p.now = p.now.Add(firstTimeout)
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
	p := newPair(t, 128)
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	var b [HeaderLen]byte
	(&Header{Kind: Data, From: 77, To: 78}).put(b[:])
	for began := p.now; a.downs == 0; {
		p.send(0)
		p.now = p.now.Add(time.Millisecond)
		a.hear(p.now, b[:])
		if at, ok := a.c.Deadline(); !ok || !p.now.Before(at) {
			a.advance(p.now)
		}
		if p.now.Sub(began) > DefaultLimit+2*mostTimeout {
			t.Fatalf("not given up after %v", p.now.Sub(began))
		}
	}
}
