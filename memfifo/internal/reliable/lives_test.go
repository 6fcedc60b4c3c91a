package reliable

import (
	"slices"
	"testing"
	"time"
)

// begin replaces an end by one that has just begun, and returns the former one.
func (p *pair) begin(i int, life uint32) (former *end) {
	former = p.ends[i]
	p.ends[i] = p.newEnd(i, 1-i, former.size, life, p.start)
	return former
}

// talk has an end send a record, which arrives.
func (p *pair) talk(from int) {
	p.t.Helper()
	a := p.ends[from]
	if !a.write(p.now, Requests, 20) {
		p.t.Fatal("no room")
	}
	p.pass(time.Second)
	if s := p.streams[a.out[Requests]]; !a.done() || s.sent != s.got || s.sent == 0 {
		p.t.Fatalf("%d is %v, done %t: %+v", from, a.c.State(), a.done(), s)
	}
}

// cut has an end send a record that is lost, and again, until it gives up.
func (p *pair) cut(from int) {
	a := p.ends[from]
	a.write(p.now, Requests, 20)
	for downs := a.downs; a.downs == downs; {
		p.send(from)
		p.air[1-from] = nil
		at, ok := a.c.Deadline()
		if !ok {
			p.t.Fatal("no deadline")
		}
		p.now = at
		a.advance(at)
	}
}

// blackHole has an end send a record on a path that loses data frames and no others, until the
// end gives up.
func (p *pair) blackHole(from int) {
	a := p.ends[from]
	a.write(p.now, Requests, 100)
	for downs, events := a.downs, 0; a.downs == downs; events++ {
		p.send(from)
		p.air[1-from] = slices.DeleteFunc(p.air[1-from], func(b []byte) bool { return Kind(b[0]&0xf) == Data })
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

// A peer that was given up and was there all the time is spoken to again: this end has begun
// another life, the peer has not.
func TestLives_AfterBeingGivenUp(t *testing.T) {
	p := newPair(t, 120).open()
	for range 3 {
		p.cut(0)
		p.talk(0)
		p.talk(1)
	}
	if a, b := p.ends[0], p.ends[1]; a.restarts != 0 || b.restarts != 3 {
		t.Errorf("anew %d and %d times, want 0 and 3", a.restarts, b.restarts)
	}
}

// The one that was given up speaks first.
func TestLives_TheOneGivenUpSpeaks(t *testing.T) {
	p := newPair(t, 120).open()
	p.cut(0)
	p.ends[1].write(p.now, Requests, 20) // for the former life: it fails
	p.pass(time.Second)
	if b := p.ends[1]; b.restarts != 1 || !b.done() {
		t.Errorf("anew %d times", b.restarts)
	}
	p.talk(1)
	p.talk(0)
}

// Both have begun anew, and greet each other at once: two hellos and their answers, no more.
func TestLives_BothAnew(t *testing.T) {
	p := newPair(t, 120).open()
	p.begin(0, 11)
	p.begin(1, 12)
	p.ends[0].write(p.now, Requests, 20)
	p.ends[1].write(p.now, Requests, 20)
	frames := 0
	for n := 1; n > 0; frames += n {
		n = p.send(0) + p.send(1)
		p.deliver(0)
		p.deliver(1)
	}
	if frames > 10 { // a hello, an answer, an answer to its question, data, an acknowledgement
		t.Errorf("%d frames", frames)
	}
	p.talk(0)
	p.talk(1)
}

// A hello that a life of the peer has sent which nobody has met, and which is over, comes after
// that of the present life.
func TestLives_AHelloFromTheGrave(t *testing.T) {
	p := newPair(t, 120).open()
	p.begin(0, 11)
	p.ends[0].write(p.now, Requests, 20)
	p.send(0)
	late := p.air[1][0]
	p.air[1] = nil

	p.begin(0, 12)
	p.talk(0)
	met := p.ends[1].restarts
	p.air[1] = append(p.air[1], late)
	p.deliver(1)
	p.settle()
	p.talk(1)
	p.talk(0)
	if n := p.ends[1].restarts - met; n > 0 {
		t.Errorf("%d times anew", n)
	}
}

// All frames of twenty former lives come again, in any order: nothing is taken, nothing begins
// anew.
func TestLives_FramesOfFormerLives(t *testing.T) {
	p := newPair(t, 120)
	var heard [2][][]byte
	for i := range uint32(20) {
		p.begin(int(i%2), 100+i)
		for range 12 { // rounds in which the two meet
			for from := range 2 {
				p.ends[from].write(p.now, Requests, 20)
			}
			p.send(0)
			p.send(1)
			for to := range 2 {
				heard[to] = append(heard[to], p.air[to]...)
				p.deliver(to)
			}
			p.now = p.now.Add(ackDelay)
		}
	}
	p.pass(time.Second)
	p.begin(0, 1000)
	p.talk(0)
	p.talk(1)
	a, b := p.ends[0], p.ends[1]
	was := [...]int{a.restarts, b.restarts, int(a.c.Counters().Delivered), int(b.c.Counters().Delivered)}
	for to, frames := range heard {
		slices.Reverse(frames)
		for _, f := range frames {
			p.air[to] = append(p.air[to], f)
			p.deliver(to)
			p.send(to)
			p.air[1-to] = nil // so that nobody answers but to what is late
			p.now = p.now.Add(ackDelay)
		}
	}
	if is := [...]int{a.restarts, b.restarts, int(a.c.Counters().Delivered), int(b.c.Counters().Delivered)}; is != was {
		t.Errorf("%v, then %v", was, is)
	}
	p.settle()
	p.talk(0)
	p.talk(1)
}

// One that has said goodbye and is there all the same (as a forged bye would have it) is met
// again, and nothing is taken for what was taken before.
func TestLives_AfterABye(t *testing.T) {
	p := newPair(t, 120).open()
	for range 3 {
		p.ends[1].c.Close()
		p.settle()
		p.talk(0)
		p.talk(1)
	}
	if a, b := p.ends[0], p.ends[1]; a.lefts != 3 || a.restarts != 0 || b.restarts != 3 {
		t.Errorf("left %d times, anew %d and %d times, want 3, 0 and 3", a.lefts, a.restarts, b.restarts)
	}
}

// A hello that nobody follows up changes nothing.
func TestLives_AForgedHello(t *testing.T) {
	p := newPair(t, 120).open()
	for life := range uint32(1000) {
		var b [ackLen]byte
		h := Header{Kind: Hello, Src: 5000 + life, Sequence: life}
		h.put(b[:])
		p.ends[1].hear(p.now, b[:])
		if p.send(1) > 1 {
			t.Fatal("more than one answer")
		}
	}
	p.air[0] = nil
	p.talk(0)
	if n := p.ends[1].restarts; n > 0 {
		t.Errorf("%d times anew", n)
	}
}
