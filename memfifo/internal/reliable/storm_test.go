package reliable

import (
	"testing"

	"github.com/rawlane/rawlane/internal/congestion"
)

// The round trip is not known, as all frames were sent again. A hundred acknowledgements, at
// once, say that one is missing: that is sent again once, and not for each of them.
func TestStorm_NoRoundTripKnown(t *testing.T) {
	p := newPair(t, 120).open()
	p.ends[0].c.rtt = congestion.RTT{}
	for range 20 {
		p.ends[0].write(p.now, Requests, 100)
	}
	p.send(0)
	p.air[1] = nil
	at, _ := p.ends[0].c.Deadline()
	p.now = at
	p.ends[0].advance(at)
	p.send(0)
	p.air[1] = p.air[1][1:] // the first is lost again
	p.deliver(1)
	p.send(1)
	ack := p.air[0][len(p.air[0])-1]
	was := p.ends[0].c.Counters().Retransmitted
	for range 100 {
		p.air[0] = [][]byte{ack}
		p.deliver(0)
		p.send(0)
	}
	if n := p.ends[0].c.Counters().Retransmitted - was; n > 4 {
		t.Errorf("%d frames again", n)
	}
	p.settle()
}
