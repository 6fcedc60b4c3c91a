package reliable

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// pair is two ends and the frames in transit between them.
type pair struct {
	t *testing.T
	*model
	now       monotime.Time
	ends      [2]*end
	inTransit [2][][]byte // by receiver
	start     uint32
}

func newPair(t *testing.T, size int) *pair {
	p := &pair{t: t, model: &model{}, now: monotime.At(time.Second)}
	for i := range p.ends {
		p.ends[i] = p.newEnd(i, 1-i, size, uint32(i+1), 0)
	}
	return p
}

// send has an end send all that it may, and returns how many frames that were.
func (p *pair) send(from int) int {
	sent := 0
	for frames := p.ends[from].next(p.now); len(frames) > 0; frames = p.ends[from].next(p.now) {
		for _, b := range frames {
			p.inTransit[1-from] = append(p.inTransit[1-from], slices.Clone(b[headroom:]))
		}
		sent += len(frames)
	}
	return sent
}

// deliver has an end receive all frames in transit to it.
func (p *pair) deliver(to int) {
	for _, b := range p.inTransit[to] {
		p.ends[to].receive(p.now, b)
		p.ends[to].check()
	}
	p.inTransit[to] = p.inTransit[to][:0]
	p.ok()
}

// settle exchanges frames until both ends are quiet, while time stands still.
func (p *pair) settle() {
	for rounds := 0; p.send(0)+p.send(1) > 0 || len(p.inTransit[0])+len(p.inTransit[1]) > 0; rounds++ {
		if rounds > 10_000 {
			p.t.Fatalf("they talk for ever: %q and %q", p.describe(0), p.describe(1))
		}
		p.deliver(0)
		p.deliver(1)
	}
	p.ok()
}

// pass lets time pass, from one deadline to the next.
func (p *pair) pass(d time.Duration) {
	for until := p.now.Add(d); p.now.Before(until); {
		next := until
		for _, e := range p.ends {
			if at, ok := e.c.Deadline(); ok && at.Before(next) {
				next = at
			}
		}
		if p.now.Before(next) {
			p.now = next
		} else {
			p.now = p.now.Add(time.Microsecond)
		}
		for _, e := range p.ends {
			if at, ok := e.c.Deadline(); ok && !p.now.Before(at) {
				e.advance(p.now)
			}
		}
		p.settle()
	}
}

func (p *pair) ok() {
	p.t.Helper()
	if p.wrong != "" {
		p.t.Fatal(p.wrong)
	}
}

// open completes the handshake.
func (p *pair) open() *pair {
	p.ends[0].write(p.now, Requests, 20)
	p.settle()
	for _, e := range p.ends {
		if e.c.state != Open {
			p.t.Fatalf("%d is %v", e.node, e.c.state)
		}
	}
	p.pass(time.Second)
	return p
}
