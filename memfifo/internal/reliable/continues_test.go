package reliable

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The short way of Handle is for frames that continue their lane and do nothing else: what it skips
// must not be needed.
func TestContinues_OnlyPlainNextFrames(t *testing.T) {
	open := func() (*pair, Header) {
		p := newPair(t, 120).open()
		h := p.between(0)
		h.Sequence = p.ends[0].c.lanes[0].receiver.nxt
		p.handle(0, h, nil) // an acknowledgement is due
		h.Sequence++
		return p, h
	}
	for _, x := range []struct {
		name    string
		change  func(*pair, *Header)
		records int
		want    bool
	}{
		{"the next frame", func(*pair, *Header) {}, 50, true},
		{"of the greatest length", func(*pair, *Header) {}, 100, true},
		{"one byte longer", func(*pair, *Header) {}, 101, false},
		{"it requests an acknowledgement", func(_ *pair, h *Header) { h.AckNow = true }, 50, true},
		{"no data", func(_ *pair, h *Header) { h.Kind = Ack }, 0, false},
		{"of another incarnation", func(_ *pair, h *Header) { h.Src++ }, 50, false},
		{"for another incarnation", func(_ *pair, h *Header) { h.Dst++ }, 50, false},
		{"one too early", func(_ *pair, h *Header) { h.Sequence++ }, 50, false},
		{"for the second time", func(_ *pair, h *Header) { h.Sequence-- }, 50, false},
		{"of a lane of which nothing is to be acknowledged", func(_ *pair, h *Header) { h.Lane = Replies }, 50, false},
		{"it acknowledges something", func(p *pair, h *Header) {
			p.ends[0].write(p.now, Requests, 100)
			p.send(0)
			h.Sequence, h.Ack = p.ends[0].c.lanes[0].receiver.nxt, h.Ack+1
			p.ends[0].c.lanes[0].unacked = 1
		}, 50, false},
		{"it brings credit", func(p *pair, h *Header) { p.ends[0].c.lanes[0].creditLimit-- }, 50, false},
		{"it takes credit", func(_ *pair, h *Header) { h.Credit-- }, 50, false},
		{"more credit than there can be", func(_ *pair, h *Header) { h.Credit = 0xffff }, 50, true},
		{"one behind it has come", func(p *pair, h *Header) {
			later := *h
			later.Sequence++
			p.handle(0, later, nil)
		}, 50, false},
		{"it is held", func(p *pair, h *Header) { p.ends[0].c.Hold(Requests, []byte{1}) }, 50, false},
	} {
		p, h := open()
		x.change(p, &h)
		c := p.ends[0].c
		owed, soon := c.lanes[h.Lane].unacked, c.lanes[h.Lane].ackRequested
		if got := c.continues(&h, x.records); got != x.want {
			t.Errorf("%s: %t", x.name, got)
		}
		if x.want {
			owed, soon = owed+1, soon || h.AckNow
		}
		if l := &c.lanes[h.Lane]; l.unacked != owed || l.ackRequested != soon {
			t.Errorf("%s: %d are to be acknowledged, soon %t, want %d and %t", x.name, l.unacked, l.ackRequested, owed, soon)
		}
	}
}

// The short way does what the long one would have done, in any state; only needsPump may stay
// false.
func TestContinues_AgreesWithHandle(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	compared, scripts := 0, 15
	if testing.Short() {
		scripts = 5
	}
	for n := 0; n < scripts || compared < 10 && n < 10*scripts; n++ {
		s := newScript(t)
		for range 400 {
			s.do(byte(rng.Uint32()))
			for i, e := range s.ends {
				e.c.SetAckPolicy(AckPolicy(rng.IntN(3)))
				for _, b := range s.inTransit[i][:min(len(s.inTransit[i]), 2)] {
					var h Header
					if err := Parse(b, &h); err != nil {
						t.Fatal(err)
					}
					fast, slow := *e.c, *e.c
					counters := [2]Counters{*e.c.cfg.Counters, *e.c.cfg.Counters}
					fast.cfg.Counters, slow.cfg.Counters = &counters[0], &counters[1]
					if !fast.continues(&h, len(b)-HeaderLen) {
						continue
					}
					if slow.handle(s.now.Add(time.Second), &h, b[HeaderLen:]) != Deliver {
						t.Fatalf("seed %d: %+v is not to be taken", seed, h)
					}
					if l := &slow.lanes[h.Lane]; !fast.needsPump && l.ackDue(slow.ackPolicy) {
						t.Fatalf("seed %d: %+v is to be acknowledged, and stirs nothing", seed, h)
					}
					slow.needsPump = fast.needsPump
					fast.cfg, slow.cfg = Config{Counters: &counters[0]}, Config{Counters: &counters[1]}
					if !reflect.DeepEqual(&fast, &slow) {
						all := cmp.Exporter(func(reflect.Type) bool { return true })
						t.Fatalf("seed %d: %+v: the long way (-) and the short one (+):\n%s", seed, h, cmp.Diff(slow, fast, all))
					}
					compared++
				}
			}
		}
	}
	if compared < 10 {
		t.Errorf("seed %d: %d frames continue a lane", seed, compared)
	}
	t.Logf("%d frames", compared)
}
