package bench

import (
	"testing"
	"testing/synctest"
	"time"
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
