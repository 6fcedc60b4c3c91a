package bench

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport/fabric"
)

// Large sizes on a slow line take minutes each, and are told as well.
func TestTimes_OfMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryNode{b: &memoryBench{bench: bench{iters: 2}, bytes: 1 << 30}}
		r := &memoryResult{}
		r.SizeBytes = 1 << 20
		took, err := n.timed(r, 1, func() error { time.Sleep(10 * time.Minute); return nil }, unchecked)
		const us = 600e6
		if err != nil || took != 20*time.Minute || r.P50US < us*0.999 || r.P50US > us*1.001 {
			t.Errorf("p50 %v us, %v in all, %v; want %v us each", r.P50US, took, err, us)
		}
	})
}

// A FIFO's records are checked, and that is no part of their time.
func TestFIFO_ChecksAreNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryNode{b: &memoryBench{bench: bench{iters: 100}, bytes: 1 << 30}}
		r := &memoryResult{}
		r.SizeBytes = 8
		checked := 0
		do := func() error { time.Sleep(time.Microsecond); return nil }
		_, err := n.timed(r, 1, do, func() error { checked++; time.Sleep(time.Millisecond); return nil })
		if err != nil || checked < r.Iters || r.MaxUS > 1.01 {
			t.Errorf("checked %d times of %d, %v us at most, %v; want 1 us", checked, r.Iters, r.MaxUS, err)
		}
	})
}

// Batches arrive whole, whether they are copied or sent from where they are built, in more calls of
// the link than one, and though its receiver has no room now and then.
func TestBatch(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		for _, room := range []int{0, 8} {
			synctest.Test(t, func(t *testing.T) {
				eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{
					Fabric: fabric.Config{QueueFrames: room}, Endpoint: mcd.Config{Spin: -1},
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = closeAll() })
				c := &client{ep: eps[0], peers: []mcd.NodeID{eps[1].Node()}}
				if c.data, err = eps[0].OpenPort(benchData, mcd.PortOptions{}); err != nil {
					t.Fatal(err)
				}
				arrived := 0
				count := func(batch []mcd.Message, _ bool) {
					for i := range batch {
						if arrived++; len(batch[i].Payload) != 24 {
							t.Errorf("a message of %d bytes", len(batch[i].Payload))
						}
					}
				}
				if _, err := eps[1].OpenPort(benchData, mcd.PortOptions{Receive: count}); err != nil {
					t.Fatal(err)
				}
				b := c.batch(&result{Batch: 100, SizeBytes: 24, InPlace: inPlace})
				if err := b.send(t.Context(), 1010); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if time.Sleep(time.Second); arrived != 1010 {
					t.Errorf("in place %t, room for %d frames: %d of 1010 have arrived", inPlace, room, arrived)
				}
			})
		}
	}
}
