package engine

import "testing"

// BenchmarkBarrier is one member's part in a barrier of four by a tree: it arrives, hears of
// another, tells a third and is released.
func BenchmarkBarrier(b *testing.B) {
	a := newAlone(b, "tree:2", 2, 4)
	out := make([]Send, 0, 16)
	g := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		g++
		out, _ = a.Arrive(a.now, 0, out[:0])
		m := a.from(3, Notify, g, 0)
		out = a.Handle(a.now, 3, &m, out)
		m = a.from(0, Notify, g, 2)
		out = a.Handle(a.now, 0, &m, out)
		if len(a.Ended()) != 1 {
			b.Fatalf("barrier %d has not ended", g)
		}
	}
}
