package memfifo_test

import (
	"context"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// BenchmarkPut is what a Put of 64 KiB costs both ends together, in one goroutine, without the kernel: per frame, copies and checksums
// included.
func BenchmarkPut(b *testing.B) {
	const size = 64 << 10
	x, y := linktest.Pipe()
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{x.MAC()}}, {ID: 1, MACs: []transport.MAC{y.MAC()}}}
	var eps []*mcd.Endpoint
	var remotes []*memfifo.Remote
	var keys []memfifo.Key
	var domains []*memfifo.Domain
	for k, l := range []transport.Link{x, y} {
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Spin: -1}, l)
		must(b, err)
		defer e.Close()
		d, err := memfifo.Open(e, memfifo.Config{})
		must(b, err)
		w, err := d.Register(1, make([]byte, size), memfifo.All)
		must(b, err)
		eps, domains, keys = append(eps, e), append(domains, d), append(keys, w.Key())
	}
	for k, d := range domains {
		remotes = append(remotes, d.Remote(keys[1-k]))
	}
	data := make([]byte, size)
	ctx := context.Background()
	settle := func() {
		for eps[0].Progress() || eps[1].Progress() {
		}
	}
	run := func(b *testing.B, duplex bool) {
		before := domains[0].Counters().Sent + domains[1].Counters().Sent
		b.SetBytes(size)
		for b.Loop() {
			must(b, remotes[0].Put(ctx, 0, data))
			if duplex {
				must(b, remotes[1].Put(ctx, 0, data))
			}
			settle()
		}
		frames := domains[0].Counters().Sent + domains[1].Counters().Sent - before
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
	}
	b.Run("one way", func(b *testing.B) { run(b, false) })
	b.Run("both ways", func(b *testing.B) { run(b, true) })
}
