package reliable

import (
	"testing"

	"github.com/rawlane/rawlane/internal/congestion"
)

// The round-trip time is unknown, as all frames were retransmitted. A hundred acknowledgements at
// once show that one frame is missing: it is retransmitted once, and not for each of them.
func TestStorm_NoRoundTripKnown(t *testing.T) {
	p := newPair(t, 120).open()
	p.ends[0].c.rtt = congestion.RTT{}
	for range 20 {
		p.ends[0].write(p.now, Requests, 100)
	}
	p.send(0)
	p.inTransit[1] = nil
	at, _ := p.ends[0].c.Deadline()
	p.now = at
	p.ends[0].advance(at)
	p.send(0)
	p.inTransit[1] = p.inTransit[1][1:] // the first retransmission is lost
	p.deliver(1)
	p.send(1)
	ack := p.inTransit[0][len(p.inTransit[0])-1]
	was := p.ends[0].c.cfg.Counters.Retransmitted
	for range 100 {
		p.inTransit[0] = [][]byte{ack}
		p.deliver(0)
		p.send(0)
	}
	if n := p.ends[0].c.cfg.Counters.Retransmitted - was; n > 4 {
		t.Errorf("%d retransmissions", n)
	}
	p.settle()
}
