package barrier_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
)

// Members may make their groups long after others have entered the first barrier: those ask, and wait on.
func TestGroup_Late(t *testing.T) {
	for _, a := range []schedule.Algorithm{schedule.Shuffle(), schedule.Concurrent(), schedule.Star()} {
		c := bare(t, 3)
		late := &cluster{services: c.services[1:]}
		cfg := barrier.GroupConfig{Algorithm: a}
		early := group(t, c.services[0], cfg)
		ticket, err := early.Arrive()
		if err != nil {
			t.Fatal(err)
		}
		for early.Stats().Nacks < 3 {
			runtime.Gosched()
		}
		for _, g := range late.groups(t, cfg) {
			if _, err := g.Arrive(); err != nil {
				t.Fatal(err)
			}
		}
		if err := ticket.Wait(context.Background()); err != nil {
			t.Errorf("%v: %v", a, err)
		}
	}
}
