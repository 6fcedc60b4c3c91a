package reliable

import (
	"testing"
	"time"
)

// handle has an end receive a header and records.
func (p *pair) handle(to int, h Header, records []byte) {
	b := make([]byte, maxAckLen, maxAckLen+len(records))
	b = b[:h.put(b)]
	p.inTransit[to] = append(p.inTransit[to], append(b, records...))
	p.deliver(to)
}

// between returns a header of the current incarnations.
func (p *pair) between(to int) Header {
	return Header{Kind: Data, Src: p.ends[1-to].c.local, Dst: p.ends[to].c.local, Ack: p.ends[to].c.lanes[0].una, Credit: Window}
}

// A frame that is too long is dropped, in order or not; it is not cut off.
func TestHostile_TooLong(t *testing.T) {
	for ahead := range uint32(2) {
		p := newPair(t, 120).open()
		h := p.between(1)
		h.Sequence = p.ends[1].c.lanes[0].receiver.nxt + ahead
		was := *p.ends[1].c.cfg.Counters
		p.handle(1, h, make([]byte, 1000)) // the model fails if it is delivered
		is := *p.ends[1].c.cfg.Counters
		if len(p.ends[1].pool.out) > 0 || is.TooLong != was.TooLong+1 || is.Delivered != was.Delivered {
			t.Errorf("%d ahead: %d buffers, %+v", ahead, len(p.ends[1].pool.out), is)
		}
	}
}

// A flood of frames out of order costs no more than ReorderWindow buffers a lane; each is counted.
func TestHostile_Flood(t *testing.T) {
	p := newPair(t, 120).open()
	b := p.ends[1]
	for i := range uint32(100_000) {
		h := p.between(1)
		h.Lane = uint8(i % 2)
		h.Sequence = b.c.lanes[h.Lane].receiver.nxt + 1 + i*2654435761%(1<<20)
		b.c.Handle(p.now, &h, make([]byte, 50))
	}
	b.check()
	p.ok()
	c := *b.c.cfg.Counters
	if n := len(b.pool.out); n > Lanes*ReorderWindow || c.OutOfOrder+c.Duplicate+c.BeyondWindow != 100_000 {
		t.Errorf("%d buffers, %+v", n, c)
	}
}

// Acknowledgements of frames that were never sent, or long ago, change nothing.
func TestHostile_AcknowledgementsOutOfTheWindow(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	for range 100 {
		a.write(p.now, Requests, 100)
	}
	p.send(0)
	frames := p.inTransit[1]
	p.inTransit[1] = nil
	s := &a.c.lanes[0].sender
	for _, ack := range []uint32{s.nxt + 1, s.nxt + 1000, s.nxt + 1<<31, s.una - 1, s.una - 1000, s.una - 1<<31 + 1} {
		was := [...]uint32{s.una, s.nxt, s.creditLimit, uint32(s.inFlight), uint32(s.lost)}
		h := p.between(0)
		h.Kind, h.Ack, h.SACK = Ack, ack, SACK{1<<63 | 1, 3: 1 << 63}
		p.handle(0, h, nil)
		if is := [...]uint32{s.una, s.nxt, s.creditLimit, uint32(s.inFlight), uint32(s.lost)}; is != was {
			t.Errorf("ack %d: %v, then %v", ack, was, is)
		}
	}
	p.inTransit[1] = frames
	p.pass(time.Second)
	if !a.done() {
		t.Error("not done")
	}
}

// A late acknowledgement does not take back what a newer one has said.
func TestAcknowledged_Late(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	release := p.holding()
	for range 20 {
		a.write(p.now, Requests, 100)
	}
	p.send(0)
	p.deliver(1)
	p.send(1)
	held := p.inTransit[0]
	p.inTransit[0] = nil
	release()
	p.settle()
	s := &a.c.lanes[0].sender
	if s.creditLimit != s.una+Window || !a.done() {
		t.Fatalf("credit up to %d, acknowledged up to %d", s.creditLimit, s.una)
	}
	p.inTransit[0] = held
	p.deliver(0)
	if s.creditLimit != s.una+Window {
		t.Errorf("late: credit up to %d, acknowledged up to %d", s.creditLimit, s.una)
	}
}

// Without any credit the sender stops, probes until there is some, and does not count as silent.
func TestCredit_None(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	h := p.between(0)
	h.Kind, h.Credit, h.SACK = Ack, 0, SACK{1}
	p.handle(0, h, nil)
	a.write(p.now, Requests, 20)
	if p.send(0) > 0 {
		t.Error("sent without credit")
	}
	p.pass(20 * time.Millisecond)
	if !a.done() {
		t.Error("not done")
	}
}
