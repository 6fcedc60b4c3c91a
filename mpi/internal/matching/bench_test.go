package matching

import (
	"fmt"
	"testing"
)

// BenchmarkPost posts receives of different tags, and has their messages come, the first posted
// first: as programs do that post all their receives before a step. It reports the time of one.
func BenchmarkPost(b *testing.B) {
	for _, capacity := range []int{8, 64} { // shorter than what is offered, and long enough
		for _, posted := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("capacity=%d/posted=%d", capacity, posted), func(b *testing.B) {
				receives := make([]Receive, posted)
				data := make([]byte, 8)
				var out []Output
				for b.Loop() {
					e := New(Config{Size: 2, EagerLimit: 100, EagerBytes: 1 << 20, Headers: 2 * posted, OfferFrom: 50})
					for k := range receives {
						receives[k] = Receive{Pattern: Pattern{1, 0, int32(k)}, Capacity: capacity}
						out = e.Post(&receives[k], out[:0])
					}
					for k := range receives {
						r := eager(int32(k), len(data))
						var err error
						if out, err = e.Handle(1, &r, data, out[:0]); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*posted), "ns/receive")
			})
		}
	}
}
