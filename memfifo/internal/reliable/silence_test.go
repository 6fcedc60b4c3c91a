package reliable

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// timeOut lets a number of deadlines of an end pass without any answer.
func (p *pair) timeOut(i, times int) (down bool) {
	p.t.Helper()
	a := p.ends[i]
	for range times {
		at, ok := a.c.Deadline()
		if !ok {
			p.t.Fatal("no deadline")
		}
		p.now = at
		downs := a.failures
		a.advance(p.now)
		p.send(i)
		p.inTransit[1-i] = nil
		if a.failures > downs {
			return true
		}
	}
	return false
}

// A process that was suspended for seconds does not blame its peer: the answer may be here and
// unread.
func TestSilence_OwnSuspension(t *testing.T) {
	for name, p := range map[string]*pair{"handshaking": newPair(t, 120), "open": newPair(t, 128).open()} {
		a := p.ends[0]
		a.write(p.now, Requests, 20)
		p.send(0)
		if p.timeOut(0, minRetries+1) {
			t.Fatalf("%s: gives up too soon", name)
		}
		p.now = p.now.Add(10 * DefaultPeerTimeout) // the timer runs before the received frames are read
		if a.advance(p.now); a.failures > 0 {
			t.Errorf("%s: gives up after its own suspension", name)
		}
		p.pass(time.Second)
		if s := p.streams[a.out[Requests]]; !a.done() || s.got != s.sent || a.failures > 0 {
			t.Errorf("%s: done %t, %+v, %d failures", name, a.done(), s, a.failures)
		}
	}
}

// A process that is suspended again and again finds out in the end that its peer is silent.
func TestSilence_RepeatedSuspensions(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	p.send(0)
	asked := 0
	for ; a.failures == 0 && asked < 1000; asked++ {
		p.timeOut(0, 1)
		p.now = p.now.Add(time.Second)
		a.advance(p.now)
	}
	if most := 2 * int(DefaultPeerTimeout/maxRTO); a.failures == 0 || asked > most {
		t.Errorf("%d failures, having asked %d times (want at most %d)", a.failures, asked, most)
	}
}

// To give up takes more than minRetries deadlines that have passed, and the whole timeout between
// them: neither alone is enough.
func TestRetries_Bounds(t *testing.T) {
	const timeout = time.Second
	if minRetries < 8 {
		t.Errorf("a peer is asked %d times at least, want 8: one that was suspended is asked after it woke", minRetries)
	}
	for _, x := range []struct {
		name     string
		interval time.Duration
		want     int // deadlines
	}{
		{"seldom", timeout, minRetries + 1},
		{"the timeout at the last one", timeout / minRetries, minRetries + 1},
		{"a nanosecond less", timeout/minRetries - 1, minRetries + 2},
		{"often", timeout / 100, 101},
	} {
		var r retries
		now, count := monotime.At(time.Hour), 1
		for ; !r.expired(now, now, timeout); count++ {
			now = now.Add(x.interval)
		}
		if count != x.want {
			t.Errorf("%s: given up at deadline %d, want %d", x.name, count, x.want)
		}
		r.reset()
		if r.expired(now.Add(time.Hour), now.Add(time.Hour), timeout) {
			t.Errorf("%s: an answer has come, and the next deadline is the end", x.name)
		}
	}
}

// Data that is lost for a while and then arrives, again and again, is no path that loses it: each
// acknowledgement begins the count of lost ones anew.
func TestDataLost_CountsSinceTheLastProgress(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	for lost := time.Duration(0); lost < 3*DefaultPeerTimeout; {
		a.write(p.now, Requests, 20)
		p.send(0)
		p.inTransit[1] = nil
		began := p.now
		p.timeOut(0, minRetries)
		lost += p.now.Sub(began)
		p.pass(time.Second)
		if s := p.streams[a.out[Requests]]; !a.done() || s.got != s.sent || a.failures > 0 {
			t.Fatalf("after %v without answers in all: done %t, %+v, %d failures", lost, a.done(), s, a.failures)
		}
	}
}

// A peer of which nothing is heard is silent, also where data of two lanes is under way whose timers
// are late: it has not answered, and lost data.
func TestSilence_OfTwoLanes(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	a.write(p.now, Requests, 20)
	p.send(0)
	p.now = p.now.Add(50 * time.Millisecond)
	a.write(p.now, Replies, 20)
	p.send(0)
	p.inTransit[1] = nil
	for end := p.now.Add(10 * DefaultPeerTimeout); p.now.Before(end); {
		at, ok := a.c.Deadline()
		if !ok {
			t.Fatal("no deadline")
		}
		p.now = at.Add(5 * time.Millisecond)
		a.advance(p.now)
		if a.failures > 0 {
			break
		}
		p.send(0)
		p.inTransit[1] = nil
	}
	if a.event != PeerSilent {
		t.Errorf("event %v after %d failures, want that it is silent", a.event, a.failures)
	}
}
