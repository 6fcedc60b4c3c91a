//go:build linux

package harness

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// Two players throw and catch in each turn, also behind one in which only one was there.
func TestCatch(t *testing.T) {
	var c catch
	if took, ok := c.play(0, 1); ok {
		t.Errorf("%v, alone", took)
	}
	if took, ok := c.play(2, 1); ok {
		t.Errorf("%v of one who looks on", took)
	}
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one core: two threads cannot play")
	}
	for turn, played := int64(2), false; !played; turn++ { // the other may not have a core in time
		var others sync.WaitGroup
		others.Go(func() {
			if took, ok := c.play(1, turn); ok {
				t.Errorf("player 1 has %v", took)
			}
		})
		var took time.Duration
		took, played = c.play(0, turn)
		if others.Wait(); played && (took <= 0 || took > catchPatience) {
			t.Errorf("%v there and back", took)
		}
	}
}

// Turns are by the clock, and none is twice.
func TestCatch_Await(t *testing.T) {
	c := catch{begun: time.Now()}
	for last := range int64(3) {
		if turn := c.await(); turn <= last {
			t.Errorf("turn %d behind turn %d", turn, last)
		}
	}
	if passed := time.Since(c.begun); passed < 3*probeEvery {
		t.Errorf("three turns in %v", passed)
	}
}
