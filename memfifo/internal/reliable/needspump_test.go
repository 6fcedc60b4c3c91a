package reliable

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Most frames of a stream need no pump, and the others do.
func TestNeedsPump(t *testing.T) {
	open := func() (*pair, Header) {
		p := newPair(t, 120).open()
		h := p.between(0)
		h.Sequence = p.ends[0].c.lanes[0].receiver.nxt
		p.handle(0, h, nil)
		if !p.ends[0].c.NeedsPump() || p.send(0) > 0 {
			t.Error("the first frame to be acknowledged sets a deadline, and sends nothing")
		}
		h.Sequence++
		return p, h
	}
	for _, x := range []struct {
		name   string
		change func(*pair, *Header)
		want   bool
	}{
		{"the next frame", func(*pair, *Header) {}, false},
		{"more credit than there can be", func(_ *pair, h *Header) { h.Credit = 0xffff }, false},
		{"it requests an acknowledgement", func(_ *pair, h *Header) { h.AckNow = true }, true},
		{"it requests one that may wait for data", func(p *pair, h *Header) {
			p.ends[0].c.SetAckPolicy(MayPiggyback)
			h.AckNow = true
		}, false},
		{"as many are to be acknowledged as go at once", func(p *pair, _ *Header) { p.ends[0].c.lanes[0].unacked = ackEvery - 1 }, true},
		{"one less", func(p *pair, _ *Header) { p.ends[0].c.lanes[0].unacked = ackEvery - 2 }, false},
		{"an acknowledgement alone", func(_ *pair, h *Header) { h.Kind = Ack }, true},
		{"of another incarnation", func(_ *pair, h *Header) { h.Src++ }, true},
		{"for another incarnation", func(_ *pair, h *Header) { h.Dst++ }, true},
		{"one too early", func(_ *pair, h *Header) { h.Sequence++ }, true},
		{"for the second time", func(_ *pair, h *Header) { h.Sequence-- }, true},
		{"the first of a lane that is to be acknowledged", func(_ *pair, h *Header) { h.Lane, h.Sequence = Replies, 1 }, true},
		{"it acknowledges something", func(p *pair, h *Header) {
			p.ends[0].write(p.now, Requests, 100)
			p.send(0)
			h.Sequence, h.Ack = p.ends[0].c.lanes[0].receiver.nxt, h.Ack+1
			p.ends[0].c.lanes[0].unacked = 1
		}, true},
		{"it acknowledges nothing new, while a frame is in flight", func(p *pair, _ *Header) {
			p.ends[0].write(p.now, Replies, 100)
			p.send(0)
			p.ends[0].c.lanes[0].unacked = 1
		}, false},
		{"it brings credit", func(p *pair, h *Header) { p.ends[0].c.lanes[0].creditLimit-- }, true},
		{"it takes credit", func(_ *pair, h *Header) { h.Credit-- }, true},
		{"one behind it has come", func(p *pair, h *Header) {
			later := *h
			later.Sequence++
			p.handle(0, later, nil)
			p.send(0)
			p.ends[0].c.lanes[0].unacked = 1
		}, true},
	} {
		p, h := open()
		x.change(p, &h)
		c := p.ends[0].c
		c.needsPump = false
		if p.handle(0, h, nil); c.NeedsPump() != x.want {
			t.Errorf("%s: needs a pump: %t", x.name, c.NeedsPump())
		}
	}
}

// known is what a driver knows of a connection.
type known struct {
	deadline  monotime.Time
	due       bool
	available [Lanes]int
}

func (c *Conn) known() (k known) {
	k.deadline, k.due = c.Deadline()
	for l := range Lane(Lanes) {
		k.available[l] = c.Available(l, 1)
	}
	return k
}

// Where a frame needs no pump, there is nothing to send, and what the driver knows is as it was.
func TestNeedsPump_NothingWithoutIt(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	without, scripts := 0, 15
	if testing.Short() {
		scripts = 5
	}
	for n := 0; n < scripts || without < 10 && n < 100*scripts; n++ {
		s := newScript(t)
		for range 400 {
			s.do(byte(rng.Uint32()))
			for i, e := range s.ends {
				e.c.SetAckPolicy(AckPolicy(rng.IntN(3)))
				for _, b := range s.inTransit[i][:min(len(s.inTransit[i]), 2)] {
					needed, wrong := e.tryFrame(s.now, b)
					if wrong != "" {
						t.Fatalf("seed %d: %x: %s", seed, b[:HeaderLen], wrong)
					}
					if !needed {
						without++
					}
				}
			}
		}
	}
	if without < 10 {
		t.Errorf("seed %d: %d frames need no pump", seed, without)
	}
	t.Logf("%d frames", without)
}

// tryFrame has a copy of an end that has sent all take a frame. It reports whether that needs a
// pump, and what is wrong if not.
func (e *end) tryFrame(now monotime.Time, b []byte) (needed bool, wrong string) {
	c, counters := *e.c, *e.c.cfg.Counters
	c.cfg.Counters = &counters
	c.cfg.Free = func(Buffer) {}
	c.cfg.Alloc = func(n int) Buffer { return Buffer{Bytes: make([]byte, n)} }
	c.control = make([]byte, len(c.control))
	var frames [MaxBatch][]byte
	for c.NextBatch(now, &frames) > 0 {
	}
	before := c.known()
	var h Header
	if err := Parse(b, &h); err != nil {
		return true, err.Error()
	}
	if c.Handle(now.Add(time.Second), &h, b[HeaderLen:]) == Deliver {
		c.Delivered(h.Lane)
	}
	if c.NeedsPump() {
		return true, ""
	}
	if after := c.known(); after != before {
		return false, fmt.Sprintf("nothing is to be done, and %+v is now %+v", before, after)
	}
	if c.needsPump = true; c.NextBatch(now, &frames) > 0 {
		return false, fmt.Sprintf("nothing is to be done, and %x is sent", frames[0])
	}
	return false, ""
}
