package xdp

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Counters are read while another goroutine polls: they look at nothing that is Poll's own, as the
// race detector notices.
func TestCounters_WhileAnotherPolls(t *testing.T) {
	_, a, b := ends(t)
	var reads atomic.Int32
	var ended atomic.Bool
	var reading sync.WaitGroup
	defer reading.Wait()
	defer ended.Store(true)
	reading.Go(func() {
		for ; !ended.Load(); reads.Add(1) {
			b.Counters()
		}
	})
	const frames, enough = 16, 100
	for reads.Load() < enough {
		if n, err := a.Send(numbered(b, frames)); n != frames || err != nil {
			t.Fatal(n, err)
		}
		arrived(t, b, frames)
	}
}
