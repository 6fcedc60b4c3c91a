package control_test

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/control"
)

// A peer that is removed and set again after weeks is heard by the other end, which has gone on
// watching: its probes' numbers are higher than those before, modulo 2^32.
func TestFailoverIsHeardAfterWeeks(t *testing.T) {
	for _, days := range []int{1, 26, 40, 60} {
		decider, follower := newEnd(t, low, high), newEnd(t, high, low)
		tell := func() {
			t.Helper()
			decider.run(time.Second)
			for _, s := range decider.steps {
				if s.Body != nil {
					follower.f.Heard(follower.now, low, 1, s.Body, nil)
				}
			}
			decider.steps = nil
		}
		tell()
		for range days { // of a probe every ten minutes, in place of ten a second
			for range 144 {
				decider.now = decider.now.Add(10 * time.Minute)
				decider.take(decider.f.Advance(decider.now, nil))
			}
		}
		follower.now = decider.now
		tell()
		decider.f.RemovePeer(high)
		if _, err := decider.f.SetPeer(decider.now, high, 20, nil); err != nil {
			t.Fatal(err)
		}
		tell()
		if vid, _ := follower.f.VID(low); vid != 20 {
			t.Errorf("after %d days: the follower is on VID %d, want 20", days, vid)
		}
	}
}

// A path that was out for weeks is used again: the numbers of probes have gone half way round
// meanwhile.
func TestFailover_APathComesBackAfterWeeks(t *testing.T) {
	for _, days := range []int{1, 24, 25, 26, 40, 49, 50, 60} {
		e := newEnd(t, low, high)
		e.run(time.Second)
		e.answer[20] = false
		e.until(20, control.PathDown)
		for range days * 144 {
			e.now = e.now.Add(10 * time.Minute)
			e.take(e.f.Advance(e.now, nil))
		}
		e.answer[20] = true
		e.run(5 * time.Second)
		if s := e.state(20); s != control.PathUp {
			t.Errorf("after %d days: %v", days, s)
		}
	}
}

// A peer that was not heard for weeks, as each of them was in its own half of the network, is heard
// again.
func TestFailover_APeerIsHeardAfterWeeks(t *testing.T) {
	for _, days := range []int{1, 24, 26, 40, 49, 60} {
		decider, follower := newEnd(t, low, high), newEnd(t, high, low)
		tell := func() { follower.f.Heard(follower.now, low, 1, decider.news(t), nil) }
		decider.run(time.Second)
		tell()
		for range days * 144 {
			decider.now = decider.now.Add(10 * time.Minute)
			decider.take(decider.f.Advance(decider.now, nil))
		}
		decider.answer[10] = false // it moves the pair
		decider.until(10, control.PathDown)
		follower.now = decider.now
		tell()
		want, _ := decider.f.VID(high)
		if vid, _ := follower.f.VID(low); vid != want || vid == 10 {
			t.Errorf("after %d days: the follower is on VID %d, the decider on %d", days, vid, want)
		}
	}
}
