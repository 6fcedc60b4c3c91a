package memfifo_test

import (
	"context"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/standstill/standstilltest"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A machine that stands still while a domain closes does not take that for the silence of its peers:
// what was done to them is confirmed.
func TestClose_StandstillIsNoSilence(t *testing.T) {
	c := &cluster{}
	c.eps = mcdtest.Open(t, 2, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, _ int, inner transport.Link) transport.Link {
			return c.faulty(t, inner, node, fault.Config{}, 0)
		},
	})
	t.Cleanup(c.close)
	for _, e := range c.eps {
		d, err := memfifo.Open(e, memfifo.Config{PeerTimeout: 500 * time.Millisecond})
		must(t, err)
		c.domains = append(c.domains, d)
	}
	w := c.window(t, 1, 8)
	r := c.domains[0].Remote(w.Key())
	must(t, r.Put(context.Background(), 0, []byte{1}))
	must(t, c.domains[0].Flush(context.Background()))

	c.faults[1].Cut(true) // until a while after the standstill
	must(t, r.Put(context.Background(), 0, []byte{2}))
	closed := make(chan error, 1)
	go func() { closed <- c.domains[0].Close() }()
	time.Sleep(20 * time.Millisecond)
	standstilltest.Stand(t)
	time.Sleep(50 * time.Millisecond)
	c.faults[1].Cut(false)
	if err := <-closed; err != nil || w.Bytes()[0] != 2 {
		t.Errorf("%v; the window holds %d, want 2", err, w.Bytes()[0])
	}
}
