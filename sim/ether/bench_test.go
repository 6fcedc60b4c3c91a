package ether

import (
	"math"
	"testing"
	"time"

	"github.com/rawlane/rawlane/sim"

	"github.com/rawlane/rawlane/vlan/topology"
)

// What a hop of a frame costs, its share of the transport's work included: an event is the
// arrival of a frame, but for a timer now and then.
func BenchmarkHop(b *testing.B) {
	for _, c := range []struct {
		name, spec string
		floods     bool
	}{{"flat", "flat:16", false}, {"vbft", "vbft:4x4x4", false}, {"flooding", "vbft:4x4x4", true}} {
		b.Run(c.name, func(b *testing.B) {
			t, err := topology.Parse(c.spec)
			if err != nil {
				b.Fatal(err)
			}
			q := new(sim.Queue)
			n, err := New(q, Config{Topology: t, Seed: 1})
			if err != nil {
				b.Fatal(err)
			}
			for i := range 8 {
				n.NewFlow(i, i+8, nil).Send(math.MaxInt64)
			}
			if c.floods {
				n.SetVID(0, 8, 2)
			}
			q.Run(q.Now().Add(100 * time.Millisecond))
			b.ReportAllocs()
			for b.Loop() {
				q.Step()
			}
		})
	}
}
