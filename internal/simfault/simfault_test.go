package simfault

import (
	"testing"

	"github.com/rawlane/rawlane/sim"
)

// The figures of several runs add up. A point that was never hit is there.
func TestFigures(t *testing.T) {
	f := Figures{}
	for range 2 {
		f.AddNetwork(&sim.Counters{Sent: 7, Lost: 3, Duplicated: 4, Reordered: 5, Delayed: 6, Corrupted: 8, Cut: 9, Misrouted: 10, Burst: 2, Overrun: 1})
		f.AddPoints([]string{LateTimer, ShortFrame}, map[string]uint64{LateTimer: 21, "unnamed": 5})
	}
	const want = `{"fault: corrupted":16,"fault: cut":18,"fault: delayed":12,"fault: duplicated":8,"fault: in a burst":4,"fault: lost":6,` +
		`"fault: misrouted":20,"fault: reordered":10,"fault: ring full":2,"frames":14,"point: late timer":42,"point: short frame":0}`
	if f.String() != want {
		t.Errorf("%s, want\n%s", f, want)
	}
}
