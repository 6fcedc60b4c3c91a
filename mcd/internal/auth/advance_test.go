package auth

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// However many challenges are open, each due at another time, Advance passes over them once in 2 ms
// at most: strangers who send again what they have recorded of many addresses open as many as there
// may be. No challenge is repeated early, nor more than 2 ms late.
func TestAdvance_IsRare(t *testing.T) {
	b := newNode(t, "b", 9, false, secret(1))
	const (
		addresses = 200 // for so many the budget suffices
		apart     = 100 * time.Microsecond
	)
	type open struct {
		sent monotime.Time
		wait time.Duration
	}
	asked := map[transport.MAC]*open{}
	var last monotime.Time
	repeated := 0
	for end := start.Add(300 * time.Millisecond); ; {
		at, ok := b.v.Deadline()
		if next := start.Add(time.Duration(len(asked)) * apart); len(asked) < addresses && (!ok || next.Before(at)) {
			mac := transport.MAC{2, 9, 9, 9, 9, byte(len(asked))}
			if n := len(b.v.Ask(next, mac, nil)); n != 1 {
				t.Fatalf("%d challenges to %v", n, mac)
			}
			asked[mac] = &open{sent: next, wait: 5 * time.Millisecond}
			continue
		}
		if !ok || at.After(end) {
			break
		}
		if gap := at.Sub(last); !last.IsZero() && gap < 2*time.Millisecond {
			t.Fatalf("at %v: a pass %v after another one", at.Sub(start), gap)
		}
		last = at
		for _, m := range b.v.Advance(at, nil) {
			a := asked[m.Dst]
			if late := at.Sub(a.sent) - a.wait; late < 0 || late > 2*time.Millisecond {
				t.Errorf("%v: repeated %v after it was due", m.Dst, late)
			}
			a.sent, a.wait = at, min(2*a.wait, 80*time.Millisecond)
			repeated++
		}
	}
	// After 5, 15, 35, 75, 155 and 235 ms, and a little more; the last ones began 20 ms later.
	if repeated != 6*addresses {
		t.Errorf("%d challenges were repeated, want each of %d 6 times", repeated, addresses)
	}
}
