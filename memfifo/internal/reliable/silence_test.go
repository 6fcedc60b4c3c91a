package reliable

import (
	"testing"
	"time"
)

// ask has an end ask its peer, in vain, so many times.
func (p *pair) ask(i, times int) (down bool) {
	p.t.Helper()
	a := p.ends[i]
	for range times {
		at, ok := a.c.Deadline()
		if !ok {
			p.t.Fatal("no deadline")
		}
		p.now = at
		downs := a.downs
		a.advance(p.now)
		p.send(i)
		p.air[1-i] = nil
		if a.downs > downs {
			return true
		}
	}
	return false
}

// A node that stood still, as where its processor was another's for seconds, has not asked
// meanwhile: its peer may have answered.
func TestSilence_OfOneThatStoodStillItself(t *testing.T) {
	for name, p := range map[string]*pair{"handshaking": newPair(t, 120), "open": newPair(t, 128).open()} {
		a := p.ends[0]
		a.write(p.now, Requests, 20)
		p.send(0)
		if p.ask(0, minRetries+1) {
			t.Fatalf("%s: given up early", name)
		}
		p.now = p.now.Add(10 * DefaultPeerTimeout) // first the timer is seen to, and then what has arrived
		if a.advance(p.now); a.downs > 0 {
			t.Errorf("%s: given up by one that was away", name)
		}
		p.pass(time.Second)
		if s := p.streams[a.out[Requests]]; !a.done() || s.got != s.sent || a.downs > 0 {
			t.Errorf("%s: done %t, %+v, given up %d times", name, a.done(), s, a.downs)
		}
	}
}

// One that stands still now and then gives up all the same, in the end.
func TestSilence_OfOneThatStandsStillOften(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	p.send(0)
	asked := 0
	for ; a.downs == 0 && asked < 1000; asked++ {
		p.ask(0, 1)
		p.now = p.now.Add(time.Second)
		a.advance(p.now)
	}
	if most := 2 * int(DefaultPeerTimeout/maxRTO); a.downs == 0 || asked > most {
		t.Errorf("given up %d times, having asked %d times (want at most %d)", a.downs, asked, most)
	}
}
