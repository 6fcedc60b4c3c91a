package reliable

import (
	"testing"
	"time"
)

// holding has end 1 hold its requests from the first record on.
func (p *pair) holding() (release func()) {
	held := true
	p.ends[1].holds = func(l Lane) bool { return held && l == Requests }
	return func() {
		held = false
		p.ends[1].resume(Requests)
	}
}

// When a lane goes on, the receiver says so at once; the sender does not wait until its next probe.
func TestHold_ResumeIsTold(t *testing.T) {
	p := newPair(t, 120).open()
	release := p.holding()
	a := p.ends[0]
	for a.write(p.now, Requests, 100) {
	}
	p.pass(time.Second)
	if a.done() || p.ends[1].c.lanes[Requests].rest == nil {
		t.Fatal("not held")
	}
	if release(); !p.ends[1].c.NeedsPump() {
		t.Error("the lane went on, and there is nothing to tell the sender")
	}
	p.settle() // no time passes
	if c := &a.c.lanes[Requests]; c.una < 2+heldCredit {
		t.Errorf("after the lane went on, the sender knows of frame %d", c.una)
	}
	p.pass(10 * time.Millisecond)
	if !a.done() {
		t.Error("not done")
	}
}

// While a lane is held, the sender does not retransmit frames that the receiver has no room for; it
// probes now and then. A hold is no congestion: afterwards the window is as before.
func TestHold_IsQuietAndNoCongestion(t *testing.T) {
	p := newPair(t, 120).open()
	a, b := p.ends[0], p.ends[1]
	a.c.lanes[Requests].window(Window, Window)
	release := p.holding()
	for a.write(p.now, Requests, 100) {
	}
	p.settle()
	was := *a.c.cfg.Counters
	p.pass(10 * DefaultPeerTimeout)
	is := *a.c.cfg.Counters
	if n := is.Retransmitted - was.Retransmitted; n > Window {
		t.Errorf("%d frames were retransmitted, want no more than once each", n)
	}
	if n := is.Acks - was.Acks; n < 100 || n > 400 {
		t.Errorf("%d probes in %v", n, 10*DefaultPeerTimeout)
	}
	if c := a.c.lanes[Requests].reno.Window(); c < Window/2 {
		t.Errorf("cwnd %d", c)
	}
	if a.failures+b.failures+a.restarts+b.restarts > 0 {
		t.Error("down")
	}
	if len(b.pool.out) > ReorderWindow {
		t.Errorf("%d buffers are out", len(b.pool.out))
	}
	release()
	p.pass(100 * time.Millisecond)
	if !a.done() {
		t.Error("not done")
	}
	if n := a.c.cfg.Counters.Retransmitted - was.Retransmitted; n > Window {
		t.Errorf("%d frames were retransmitted, in all", n)
	}
}

// An acknowledgement takes credit back only if it says why: the next frame is here, and held. Others
// may be older than what gave the credit.
func TestHold_WhatTakesCreditBack(t *testing.T) {
	const credit, frames = 2, 10
	for _, x := range []struct {
		name string
		kind Kind
		sack SACK
		sent int
	}{
		{"the next frame is here", Ack, SACK{1}, credit},
		{"another one is here", Ack, SACK{2}, frames},
		{"none is here", Ack, SACK{}, frames},
		{"data", Data, SACK{}, frames},
	} {
		p := newPair(t, 120).open()
		h := p.between(0)
		h.Kind, h.SACK, h.Credit, h.Sequence = x.kind, x.sack, credit, 0
		if x.kind == Data {
			h.Sequence = p.ends[0].c.lanes[0].receiver.nxt
		}
		p.handle(0, h, nil)
		p.send(0) // what it has to say about that
		for range frames {
			p.ends[0].write(p.now, Requests, 100)
		}
		if n := p.send(0); n != x.sent {
			t.Errorf("%s: %d frames are sent, want %d", x.name, n, x.sent)
		}
	}
}

// A held lane holds up neither the other lane nor the other direction.
func TestHold_OneLaneOnly(t *testing.T) {
	p := newPair(t, 120).open()
	release := p.holding()
	a, b := p.ends[0], p.ends[1]
	for range 1000 {
		a.write(p.now, Requests, 100)
		for l := range Lane(Lanes) {
			b.write(p.now, l, 100)
		}
		a.write(p.now, Replies, 100)
		p.settle()
		p.now = p.now.Add(10 * time.Microsecond)
	}
	p.pass(ackDelay)
	for _, s := range []uint32{a.out[Replies], b.out[Requests], b.out[Replies]} {
		if s := p.streams[s]; s.got != s.sent || s.sent != 1000 {
			t.Errorf("%+v", s)
		}
	}
	release()
	p.pass(100 * time.Millisecond)
	if s := p.streams[a.out[Requests]]; s.got != s.sent || s.sent < Window {
		t.Errorf("%+v", s)
	}
}

// The frame that holds its lane has arrived: when it comes again, it is a duplicate. Those behind it
// are out of order.
func TestHold_WhatItCounts(t *testing.T) {
	p := newPair(t, 120).open()
	frames := p.apart(3)
	p.holding()
	was := *p.ends[1].c.cfg.Counters
	p.inTransit[1] = [][]byte{frames[0], frames[0], frames[1], frames[0], frames[1], frames[2]}
	p.deliver(1)
	is := *p.ends[1].c.cfg.Counters
	if dup, ooo, done := is.Duplicate-was.Duplicate, is.OutOfOrder-was.OutOfOrder, is.Delivered-was.Delivered; dup != 3 || ooo != 2 || done != 0 {
		t.Errorf("%d duplicates, %d out of order, %d delivered; want 3, 2 and 0", dup, ooo, done)
	}
}

// A lane is held in the middle of a frame that arrived out of order, again and again.
func TestHold_OutOfOrderFrame(t *testing.T) {
	p := newPair(t, 256).open()
	a, b := p.ends[0], p.ends[1]
	n := 0
	b.holds = func(Lane) bool { n++; return n%2 == 0 }
	for range 100 {
		a.write(p.now, Requests, 40)
	}
	p.send(0)
	p.inTransit[1] = append(p.inTransit[1][1:], p.inTransit[1][0])
	p.deliver(1)
	for range 300 {
		p.settle()
		b.resume(Requests)
	}
	p.pass(time.Second)
	b.resume(Requests)
	p.pass(time.Second)
	if s := p.streams[a.out[Requests]]; s.got != 101 || len(b.pool.out) > 0 || !a.done() {
		t.Errorf("%+v, %d buffers, done %t", s, len(b.pool.out), a.done())
	}
}

// An end that has nothing to send asks for no credit, though it has none; one that has, does.
func TestHold_NothingToSend(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	h := p.between(0)
	h.Kind, h.Credit, h.SACK = Ack, 0, SACK{1}
	p.handle(0, h, nil)
	if n := p.send(0); n > 0 {
		t.Errorf("sends %q", p.describe(1))
	}
	if at, ok := a.c.Deadline(); ok {
		t.Errorf("a deadline in %v", at.Sub(p.now))
	}
	a.write(p.now, Requests, 20)
	if at, ok := a.c.Deadline(); !ok {
		t.Errorf("a record waits for credit, and there is no deadline: %v", at)
	}
}
