package reliable

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
)

// The bounds as the other end and the network see them, in figures.
func TestLimits(t *testing.T) {
	p := newPair(t, 120).open()
	a, b := p.ends[0], p.ends[1]
	s := &a.c.lanes[Requests].sender
	for range 300 {
		a.write(p.now, Requests, 100)
	}
	if n := s.queued - s.una; n != 256 {
		t.Errorf("%d frames are kept, want 256", n)
	}
	if n := p.send(0); n != 64 {
		t.Errorf("%d frames go before the first acknowledgement, want 64", n)
	}
	p.pass(time.Second)

	b.c.Hold(Requests, make([]byte, 10))
	var h Header
	if b.c.lanes[Requests].fillAck(&h); h.Credit != 64 {
		t.Errorf("credit for %d frames while the lane is held, want 64", h.Credit)
	}
	if w := reorderingWindow(&congestion.RTT{}); w != 20*time.Microsecond {
		t.Errorf("frames may be reordered by %v at least, want 20µs", w)
	}
	if b.c.cfg.PeerTimeout != 2*time.Second || a.c.maxBatch() != 64 {
		t.Errorf("a peer timeout of %v, batches of %d frames", b.c.cfg.PeerTimeout, a.c.maxBatch())
	}
}
