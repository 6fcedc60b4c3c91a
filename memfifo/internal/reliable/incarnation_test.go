package reliable

import (
	"slices"
	"testing"
	"time"
)

// restart replaces an end by a new one, and returns the former one.
func (p *pair) restart(i int, life uint32) (former *end) {
	former = p.ends[i]
	p.ends[i] = p.newEnd(i, 1-i, former.size, life, p.start)
	return former
}

// deliverOne has an end send a record, which arrives.
func (p *pair) deliverOne(from int) {
	p.t.Helper()
	a := p.ends[from]
	if !a.write(p.now, Requests, 20) {
		p.t.Fatal("no room")
	}
	p.pass(time.Second)
	if s := p.streams[a.out[Requests]]; !a.done() || s.sent != s.got || s.sent == 0 {
		p.t.Fatalf("%d is %v, done %t: %+v", from, a.c.state, a.done(), s)
	}
}

// cut has an end send a record that is lost, with all retransmissions, until the end gives up.
func (p *pair) cut(from int) {
	a := p.ends[from]
	a.write(p.now, Requests, 20)
	for downs := a.failures; a.failures == downs; {
		p.send(from)
		p.inTransit[1-from] = nil
		at, ok := a.c.Deadline()
		if !ok {
			p.t.Fatal("no deadline")
		}
		p.now = at
		a.advance(at)
	}
}

// blackHole has an end send a record on a path that loses data frames and no others, until the end
// gives up.
func (p *pair) blackHole(from int) {
	a := p.ends[from]
	a.write(p.now, Requests, 100)
	for downs, events := a.failures, 0; a.failures == downs; events++ {
		p.send(from)
		p.inTransit[1-from] = slices.DeleteFunc(p.inTransit[1-from], func(b []byte) bool { return Kind(b[0]&0xf) == Data })
		p.deliver(1 - from)
		p.send(1 - from)
		p.deliver(from)
		at, ok := a.c.Deadline()
		if !ok || events > 1000 {
			p.t.Fatalf("deadline %t, after %v", ok, p.now.Since())
		}
		p.now = at
		a.advance(at)
	}
}

// A peer that counted as silent, and was there all the time, is reached again: this end has a new
// incarnation, the peer has not.
func TestIncarnation_AfterPeerSilent(t *testing.T) {
	p := newPair(t, 120).open()
	for range 3 {
		p.cut(0)
		p.deliverOne(0)
		p.deliverOne(1)
	}
	if a, b := p.ends[0], p.ends[1]; a.restarts != 0 || b.restarts != 3 {
		t.Errorf("%d and %d restarts, want 0 and 3", a.restarts, b.restarts)
	}
}

// The end that counted as silent sends first.
func TestIncarnation_TheSilentPeerSends(t *testing.T) {
	p := newPair(t, 120).open()
	p.cut(0)
	p.ends[1].write(p.now, Requests, 20) // for the former incarnation: it fails
	p.pass(time.Second)
	if b := p.ends[1]; b.restarts != 1 || !b.done() {
		t.Errorf("%d restarts", b.restarts)
	}
	p.deliverOne(1)
	p.deliverOne(0)
}

// Both ends restart and send hellos at once: two handshakes, and no more.
func TestIncarnation_BothRestart(t *testing.T) {
	p := newPair(t, 120).open()
	p.restart(0, 11)
	p.restart(1, 12)
	p.ends[0].write(p.now, Requests, 20)
	p.ends[1].write(p.now, Requests, 20)
	frames := 0
	for n := 1; n > 0; frames += n {
		n = p.send(0) + p.send(1)
		p.deliver(0)
		p.deliver(1)
	}
	if frames > 10 { // hello, hello ack, hello ack to its challenge, data, ack
		t.Errorf("%d frames", frames)
	}
	p.deliverOne(0)
	p.deliverOne(1)
}

// The hello of an incarnation that has ended arrives after that of the current one.
func TestIncarnation_LateHelloOfADeadProcess(t *testing.T) {
	p := newPair(t, 120).open()
	p.restart(0, 11)
	p.ends[0].write(p.now, Requests, 20)
	p.send(0)
	late := p.inTransit[1][0]
	p.inTransit[1] = nil

	p.restart(0, 12)
	p.deliverOne(0)
	met := p.ends[1].restarts
	p.inTransit[1] = append(p.inTransit[1], late)
	p.deliver(1)
	p.settle()
	p.deliverOne(1)
	p.deliverOne(0)
	if n := p.ends[1].restarts - met; n > 0 {
		t.Errorf("%d restarts", n)
	}
}

// All frames of twenty former incarnations arrive again, in any order: nothing is delivered,
// nothing restarts.
func TestIncarnation_LateFrames(t *testing.T) {
	p := newPair(t, 120)
	var heard [2][][]byte
	for i := range uint32(20) {
		p.restart(int(i%2), 100+i)
		for range 12 { // enough for a handshake
			for from := range 2 {
				p.ends[from].write(p.now, Requests, 20)
			}
			p.send(0)
			p.send(1)
			for to := range 2 {
				heard[to] = append(heard[to], p.inTransit[to]...)
				p.deliver(to)
			}
			p.now = p.now.Add(ackDelay)
		}
	}
	p.pass(time.Second)
	p.restart(0, 1000)
	p.deliverOne(0)
	p.deliverOne(1)
	a, b := p.ends[0], p.ends[1]
	was := [...]int{a.restarts, b.restarts, int(a.c.cfg.Counters.Delivered), int(b.c.cfg.Counters.Delivered)}
	for to, frames := range heard {
		slices.Reverse(frames)
		for _, f := range frames {
			p.inTransit[to] = append(p.inTransit[to], f)
			p.deliver(to)
			p.send(to)
			p.inTransit[1-to] = nil // the late frames get no other answers
			p.now = p.now.Add(ackDelay)
		}
	}
	if is := [...]int{a.restarts, b.restarts, int(a.c.cfg.Counters.Delivered), int(b.c.cfg.Counters.Delivered)}; is != was {
		t.Errorf("%v, then %v", was, is)
	}
	p.settle()
	p.deliverOne(0)
	p.deliverOne(1)
}

// An end in whose name somebody else has said bye is reached again, and nothing is delivered twice.
func TestIncarnation_AfterABye(t *testing.T) {
	p := newPair(t, 120).open()
	for range 3 {
		p.handle(0, Header{Kind: Bye, Src: p.ends[1].c.local, Dst: p.ends[0].c.local}, nil)
		p.settle()
		p.deliverOne(0)
		p.deliverOne(1)
	}
	if a, b := p.ends[0], p.ends[1]; a.byes != 3 || a.restarts != 0 || b.restarts != 3 {
		t.Errorf("%d byes, %d and %d restarts, want 3, 0 and 3", a.byes, a.restarts, b.restarts)
	}
}

// A hello without a response changes nothing.
func TestIncarnation_ForgedHello(t *testing.T) {
	p := newPair(t, 120).open()
	for life := range uint32(1000) {
		var b [maxAckLen]byte
		h := Header{Kind: Hello, Src: 5000 + life, Sequence: life}
		h.put(b[:])
		p.ends[1].receive(p.now, b[:])
		if p.send(1) > 1 {
			t.Fatal("more than one answer")
		}
	}
	p.inTransit[0] = nil
	p.deliverOne(0)
	if n := p.ends[1].restarts; n > 0 {
		t.Errorf("%d restarts", n)
	}
}

// Numbers of challenges and probes go round, past 0, which stands for none.
func TestNumbers_GoRound(t *testing.T) {
	p := newPair(t, 120)
	for _, e := range p.ends {
		e.c.challenge = ^uint32(0)
		e.c.lanes[Requests].probeID = ^uint32(0)
	}
	p.deliverOne(0)
	for _, e := range p.ends {
		if e.c.challenge != 1 {
			t.Errorf("%d has challenge %d behind the highest, want 1", e.node, e.c.challenge)
		}
	}
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	p.send(0)
	p.inTransit[1] = nil
	p.untilDue()
	if h := a.c.lanes[Requests].probeID; h != 1 {
		t.Errorf("the probe behind the highest has number %d, want 1", h)
	}
	p.settle()
	if !a.done() || a.c.cfg.Counters.Retransmitted != 1 {
		t.Errorf("done %t, %d retransmitted by the probe's answer", a.done(), a.c.cfg.Counters.Retransmitted)
	}
}
