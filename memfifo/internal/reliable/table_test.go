package reliable

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
)

// rows are the tests of the state table in the package's comment, by its first two columns.
var rows = map[string]func(t *testing.T){
	"Idle: NextBatch, with data": func(t *testing.T) {
		p := newPair(t, 120)
		p.is(0, Idle)
		p.ends[0].write(p.now, Requests, 20)
		p.is(0, Idle)
		p.send(0)
		p.is(0, Handshaking)
		p.want(1, "hello")
	},
	"Handshaking: deadline": func(t *testing.T) {
		p := newPair(t, 120)
		p.ends[0].write(p.now, Requests, 20)
		p.send(0)
		for _, wait := range []time.Duration{1, 2, 4, 8, 10, 10} {
			p.inTransit[1] = nil
			p.after(0, wait*initialRTO)
			p.want(1, "hello")
			p.is(0, Handshaking)
		}
	},
	"any: hello": func(t *testing.T) {
		for _, c := range []struct {
			name string
			p    *pair
			from uint32
			ask  bool
		}{
			{"idle", newPair(t, 120), 9, true},
			{"open, an unknown incarnation", newPair(t, 120).open(), 9, true},
			{"open, the known one", newPair(t, 120).open(), 1, false},
		} {
			was := c.p.ends[1].c.state
			c.p.handle(1, Header{Kind: Hello, Src: c.from, Sequence: 77}, nil)
			h := c.p.sends(1)
			if h.Kind != HelloAck || h.Dst != c.from || h.Ack != 77 || h.Sequence != 0 != c.ask {
				t.Errorf("%s: %+v", c.name, h)
			}
			c.p.is(1, was)
		}
	},
	"any: hello ack with a challenge": func(t *testing.T) {
		for _, p := range []*pair{newPair(t, 120), newPair(t, 128).open()} {
			was := p.ends[1].c.state
			p.handle(1, Header{Kind: HelloAck, Src: 9, Dst: 2, Sequence: 77, Ack: 1000}, nil)
			if h := p.sends(1); h.Kind != HelloAck || h.Dst != 9 || h.Ack != 77 {
				t.Errorf("%+v", h)
			}
			p.is(1, was)
		}
	},
	"Handshaking: hello ack with the response": func(t *testing.T) {
		p := newPair(t, 120)
		p.ends[0].write(p.now, Requests, 20)
		h := p.sends(0)
		p.handle(0, Header{Kind: HelloAck, Src: 2, Dst: 1, Ack: h.Sequence}, nil)
		p.is(0, Open)
		p.send(0)
		p.want(1, "1:20!")
	},
	"Idle: hello ack with the response": func(t *testing.T) {
		p := newPair(t, 120)
		p.handle(0, Header{Kind: Hello, Src: 2, Sequence: 1}, nil)
		h := p.sends(0)
		p.handle(0, Header{Kind: HelloAck, Src: 2, Dst: 1, Ack: h.Sequence}, nil)
		p.is(0, Open)
		if p.send(0) > 0 {
			t.Errorf("sends %q", p.describe(1))
		}
	},
	"Open: hello ack, new incarnation": func(t *testing.T) {
		p := newPair(t, 120).open()
		a := p.ends[0]
		a.write(p.now, Requests, 20)
		mark := a.c.Mark(Requests)
		p.send(0)
		p.inTransit[1] = nil
		p.handle(0, Header{Kind: Hello, Src: 9, Sequence: 1}, nil)
		h := p.sends(0)
		p.handle(0, Header{Kind: HelloAck, Src: 9, Dst: 1, Ack: h.Sequence + 1}, nil) // the wrong response
		if a.restarts != 0 || a.c.Acked(Requests, mark) {
			t.Error("a hello ack without the response is believed")
		}
		p.handle(0, Header{Kind: HelloAck, Src: 9, Dst: 1, Ack: h.Sequence}, nil)
		if a.restarts != 1 || !a.done() || len(a.pool.out) > 0 {
			t.Errorf("%d restarts, done %t", a.restarts, a.done())
		}
		p.is(0, Open)
	},
	"Open: deadline": func(t *testing.T) {
		p := newPair(t, 120).open()
		p.ends[0].write(p.now, Requests, 20)
		p.send(0)
		p.inTransit[1] = nil
		p.after(0, baseRTO(&p.ends[0].c.rtt, maxRTO))
		p.want(1, "2:20! ack!")
		p.is(0, Open)
	},
	"Open: Close": func(t *testing.T) {
		closes := func(before func(p *pair), sends string) *pair {
			p := newPair(t, 120).open()
			before(p)
			p.ends[0].c.Close()
			p.send(0)
			p.want(1, sends)
			p.is(0, Closing)
			return p
		}
		closes(func(p *pair) {
			p.ends[1].write(p.now, Requests, 20)
			p.send(1)
			p.deliver(0) // an acknowledgement is due later
			p.ends[0].write(p.now, Replies, 20)
		}, "1:20! bye")
		closes(func(p *pair) {
			p.ends[1].write(p.now, Requests, 20)
			p.send(1)
			p.deliver(0)
		}, "ack bye")
		closes(func(p *pair) {
			for range 4 {
				p.ends[0].write(p.now, Replies, 20)
				p.send(0) // until little is in flight
			}
			p.inTransit[1] = nil
		}, "3:40! bye")
		p := newPair(t, 120).open()
		a, b := p.ends[0], p.ends[1]
		a.c.Close()
		if h := p.sends(0); h != (Header{Kind: Bye, Src: a.c.local, Dst: b.c.local}) {
			t.Errorf("%+v", h)
		}
		data := p.between(0) // that is delivered and answered no more
		data.Kind, data.Sequence, data.AckNow = Data, a.c.lanes[0].receiver.nxt, true
		if p.handle(0, data, make([]byte, 20)); p.send(0) > 0 {
			t.Errorf("sends %q", p.describe(1))
		}
		p = newPair(t, 128) // to an unknown peer there is no bye
		p.ends[0].write(p.now, Requests, 20)
		p.ends[0].c.Close()
		if p.is(0, Idle); p.send(0) > 0 || len(p.ends[0].pool.out) > 0 {
			t.Errorf("sends %q, and has %d buffers", p.describe(1), len(p.ends[0].pool.out))
		}
	},
	"Closing: deadline": func(t *testing.T) {
		p := newPair(t, 120).open()
		a := p.ends[0].c
		a.Close()
		rto := baseRTO(&a.rtt, maxRTO)
		p.send(0)
		for i := range 5 { // maxByes
			p.want(1, "bye")
			p.is(0, Closing)
			p.inTransit[1] = nil
			p.after(0, rto<<i)
		}
		if p.is(0, Idle); p.send(0) > 0 {
			t.Errorf("sends %q", p.describe(1))
		}
	},
	"Closing: bye ack": func(t *testing.T) {
		p := newPair(t, 120).open()
		a, b := p.ends[0].c, p.ends[1].c
		p.handle(0, Header{Kind: ByeAck, Src: b.local, Dst: a.local}, nil) // it has said no bye
		p.is(0, Open)
		a.Close()
		for _, h := range []Header{{Kind: ByeAck, Src: 9, Dst: a.local}, {Kind: ByeAck, Src: b.local, Dst: 9}} {
			p.handle(0, h, nil) // stale
			p.is(0, Closing)
		}
		if n := a.cfg.Counters.StaleIncarnation; n != 3 {
			t.Errorf("%d stale", n)
		}
		p.send(0)
		p.deliver(1)
		p.send(1)
		p.want(0, "bye-ack")
		p.deliver(0)
		p.is(0, Idle)
		if p.is(1, Idle); p.ends[1].byes != 1 || p.ends[0].byes != 0 {
			t.Errorf("%d and %d byes", p.ends[0].byes, p.ends[1].byes)
		}
	},
	"Closing: bye": func(t *testing.T) {
		p := newPair(t, 120).open()
		for i, e := range p.ends {
			e.c.Close()
			p.send(i)
		}
		p.inTransit[1] = nil // end 1 hears the answer alone
		p.deliver(0)
		p.is(0, Idle)
		p.send(0)
		p.want(1, "bye-ack")
		p.deliver(1)
		if p.is(1, Idle); p.ends[0].byes+p.ends[1].byes != 0 {
			t.Error("who leaves is told that the other does")
		}
	},
	"any: bye, stale incarnation": func(t *testing.T) {
		for name, p := range map[string]*pair{"idle": newPair(t, 120), "open": newPair(t, 120).open()} {
			a := p.ends[0].c
			was, stale := a.state, a.cfg.Counters.StaleIncarnation
			for _, h := range []Header{{Kind: Bye, Src: 2, Dst: 9}, {Kind: Bye, Src: 9, Dst: a.local}} {
				p.handle(0, h, nil)
				if answer := p.sends(0); answer != (Header{Kind: ByeAck, Src: h.Dst, Dst: h.Src}) {
					t.Errorf("%s: %+v", name, answer)
				}
			}
			p.handle(0, Header{Kind: Bye, Src: 2}, nil)
			if p.is(0, was); p.send(0) > 0 || p.ends[0].byes > 0 || a.cfg.Counters.StaleIncarnation != stale+3 {
				t.Errorf("%s: sends %q, %d byes", name, p.describe(1), p.ends[0].byes)
			}
		}
	},
	"Open: bye": func(t *testing.T) {
		p := newPair(t, 120).open()
		a, b := p.ends[0], p.ends[1]
		a.write(p.now, Requests, 20)
		p.send(0)
		p.inTransit[1] = nil
		incarnation := a.c.local
		bye := Header{Kind: Bye, Src: b.c.local, Dst: incarnation}
		p.handle(0, bye, nil)
		p.is(0, Idle)
		if a.byes != 1 || a.c.local == incarnation || !a.done() || len(a.pool.out) > 0 {
			t.Errorf("%d byes, incarnation %d, then %d, done %t", a.byes, incarnation, a.c.local, a.done())
		}
		p.handle(0, bye, nil) // duplicate
		p.send(0)
		if p.want(1, "bye-ack"); a.byes != 1 {
			t.Errorf("%d byes", a.byes)
		}
		p.restart(1, 77)
		p.deliverOne(0)
		p.deliverOne(1)
		if a.restarts > 0 {
			t.Errorf("%d restarts after a bye", a.restarts)
		}
	},
	"any: frame, stale incarnation": func(t *testing.T) {
		for _, p := range []*pair{newPair(t, 120), newPair(t, 128).open()} {
			was := p.ends[0].c.state
			for _, h := range []Header{{Kind: Data, Src: 9, Dst: 1, Sequence: 2}, {Kind: Data, Src: 2, Dst: 9, Sequence: 2}, {Kind: Ack, Src: 9, Dst: 9}} {
				p.now = p.now.Add(ackDelay)
				p.handle(0, h, nil)
				p.send(0)
				p.want(1, "hello")
				p.inTransit[1] = nil
				p.handle(0, h, nil) // too soon for another answer
				if p.is(0, was); p.send(0) > 0 {
					t.Errorf("then %q", p.describe(1))
				}
			}
			if n := p.ends[0].c.cfg.Counters.StaleIncarnation; n != 6 {
				t.Errorf("%d stale frames", n)
			}
		}
	},
	"Open: data timeout": func(t *testing.T) {
		p := newPair(t, 120).open()
		a := p.ends[0]
		incarnation, began := a.c.local, p.now
		p.blackHole(0)
		p.is(0, Idle)
		if a.event != DataLost || a.c.local == incarnation || !a.done() || len(a.pool.out) > 0 {
			t.Errorf("event %d, incarnation %d, then %d, done %t", a.event, incarnation, a.c.local, a.done())
		}
		if took := p.now.Sub(began); took < DefaultPeerTimeout || took > DefaultPeerTimeout+3*maxRTO {
			t.Errorf("after %v", took)
		}
		p.deliverOne(0)
	},
	"any: peer timeout": func(t *testing.T) {
		for name, p := range map[string]*pair{"handshaking": newPair(t, 120), "open": newPair(t, 128).open()} {
			a := p.ends[0]
			incarnation, began := a.c.local, p.now
			p.cut(0)
			p.is(0, Idle)
			if took := p.now.Sub(began); took < DefaultPeerTimeout || took > DefaultPeerTimeout+2*maxRTO {
				t.Errorf("%s: silent after %v", name, took)
			}
			if a.c.local == incarnation || !a.done() || p.send(0) > 0 {
				t.Errorf("%s: incarnation %d, then %d", name, incarnation, a.c.local)
			}
		}
	},
}

// Each row of the table has a test, and each test a row.
func TestStateTable(t *testing.T) { transcript.Table(t, "doc.go", rows) }

func (p *pair) is(i int, s State) {
	p.t.Helper()
	if is := p.ends[i].c.state; is != s {
		p.t.Errorf("%d is %v, want %v", i, is, s)
	}
}

// sends returns the header of the one frame that an end sends.
func (p *pair) sends(i int) (h Header) {
	p.t.Helper()
	if n := p.send(i); n != 1 {
		p.t.Fatalf("%d sends %d frames: %q", i, n, p.describe(1-i))
	}
	if err := Parse(p.inTransit[1-i][0], &h); err != nil {
		p.t.Fatal(err)
	}
	p.inTransit[1-i] = nil
	return h
}

// after lets d pass, at the end of which an end has something to do, and not before.
func (p *pair) after(i int, d time.Duration) {
	p.t.Helper()
	e := p.ends[i]
	began := p.now
	at, ok := e.c.Deadline()
	for ; ok && at.Sub(began) < d && e.c.tailDue(at); at, ok = e.c.Deadline() {
		p.now = at
		e.advance(at)
		p.send(i) // a tail-loss probe
		p.inTransit[1-i] = p.inTransit[1-i][:len(p.inTransit[1-i])-1]
	}
	d -= p.now.Sub(began)
	if !ok || at.Sub(p.now) != d {
		p.t.Errorf("a deadline in %v, %t, want %v", at.Sub(p.now), ok, d)
	}
	p.now = p.now.Add(d - 1)
	if e.advance(p.now); p.send(i) > 0 {
		p.t.Errorf("%q, too soon", p.describe(1-i))
	}
	p.now = p.now.Add(1)
	e.advance(p.now)
	p.send(i)
}

// tailDue reports whether a tail-loss probe is due by then.
func (c *Conn) tailDue(now monotime.Time) bool {
	return slices.ContainsFunc(c.lanes[:], func(l lane) bool {
		at, ok := l.tailDeadline(&c.rtt)
		return ok && !now.Before(at)
	})
}

// String names s.
func (s State) String() string {
	return [...]string{"idle", "handshaking", "open", "closing", "?"}[min(s, Closing+1)]
}
