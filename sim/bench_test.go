package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/prng"
)

// Each event schedules its successor; so many wait at any time.
func BenchmarkQueue(b *testing.B) {
	for _, pending := range []int{1, 1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			var q Queue
			random := prng.Source(1)
			var again func()
			again = func() { q.After(random.UpTo(50*time.Microsecond), again) }
			for range pending {
				again()
			}
			for range 2 * pending {
				q.Step()
			}
			b.ReportAllocs()
			for b.Loop() {
				q.Step()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// Who receives a message sends it on, to any node: three events each time.
func BenchmarkNetwork(b *testing.B) {
	for _, nodes := range []int{2, 1000, 1_000_000} {
		for _, faults := range []Faults{{}, {Reorder: .01, Delay: .01}} {
			b.Run(fmt.Sprintf("nodes=%d/faults=%t", nodes, faults != Faults{}), func(b *testing.B) {
				benchmarkNetwork(b, nodes, faults)
			})
		}
	}
}

func benchmarkNetwork(b *testing.B, nodes int, faults Faults) {
	var q Queue
	var n *Network[uint64]
	c := paper(nodes)
	c.Gap, c.Faults = 4*time.Microsecond, faults
	n = NewNetwork(&q, c, func(to, from, nic int, m uint64) {
		m = m*6364136223846793005 + 1
		n.Send(to, int(m>>32)%nodes, nic, m)
	})
	for i := range nodes {
		n.Send(i, (i+1)%nodes, 0, uint64(i))
	}
	for range 6 * nodes {
		q.Step()
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Step()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

// The release of a barrier: one multicast to a million nodes, two events each.
func BenchmarkNetwork_Multicast(b *testing.B) {
	const nodes = 1_000_000
	var q Queue
	n := NewNetwork(&q, paper(nodes), func(int, int, int, uint64) {})
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		n.Multicast(0, 0, 1)
		events += q.Run(q.Now().Add(time.Second))
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
