package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/plan"
)

// deadFor is what failovers tell while some VIDs are dead for a pair. With one end alone, the other's
// does not know it yet.
func deadFor(p plan.Pair, oneEnd bool, vids ...transport.VID) func(*control.Sample) {
	return func(s *control.Sample) {
		for _, vid := range vids {
			switch {
			case s.Node == p.A:
				s.Down = append(s.Down, control.DownPath{Node: p.B, VID: vid})
			case s.Node == p.B && !oneEnd:
				s.Down = append(s.Down, control.DownPath{Node: p.A, VID: vid})
			}
		}
	}
}

// A VID that is dead at either end of a pair is not proposed to it, whatever link that would relieve;
// once it is up again it is, and another pair has it all the time.
func TestControlPutsNoPairOnADeadVID(t *testing.T) {
	for _, oneEnd := range []bool{false, true} {
		w, moved, stayed := collision(t)
		w.set(moved, 1) // as it was
		if err := w.control.Replace(w.plan); err != nil {
			t.Fatal(err)
		}
		clear(w.moved)
		w.old = nil
		w.tell = deadFor(moved, oneEnd, 2, 3, 4)
		var changes []plan.Change
		for range 6 + mostChanges*int(rest/period) {
			for _, d := range w.step(both(moved, stayed)) {
				changes = append(changes, d.Change)
			}
		}
		if len(changes) != 1 || changes[0].Pair != stayed {
			t.Errorf("VIDs 2 to 4 are dead for %v: %v, want %v moved in its place", moved, changes, stayed)
		}
		w.tell = func(s *control.Sample) {
			deadFor(moved, oneEnd, 2, 3, 4)(s)
			deadFor(stayed, oneEnd, 2, 3, 4)(s)
		}
		w.set(stayed, 1)
		if err := w.control.Replace(w.plan); err != nil {
			t.Fatal(err)
		}
		clear(w.moved)
		w.old = nil
		for range 3 * int(rest/period) {
			if d := w.step(both(moved, stayed)); len(d) > 0 {
				t.Errorf("all but VID 1 is dead for both pairs: %v", d)
			}
		}
		w.tell = nil
		found := false
		for range 6 {
			found = len(w.step(both(moved, stayed))) > 0 || found
		}
		if !found {
			t.Error("all VIDs are up again, and nothing is decided")
		}
	}
}

// A change that has made it worse is not reverted to a VID that has died since.
func TestControlRevertsToNoDeadVID(t *testing.T) {
	w, moved, _ := collision(t)
	w.tell = deadFor(moved, false, 1)
	other := plan.Pair{A: 2, B: 6} // wants VID 2, too, as in TestControlRevertsWhatMadeItWorse
	w.wants(both(moved, other))
	for range 8 {
		w.run(period)
		for _, d := range w.decide() {
			if d.Change.Pair == moved && d.Change.To == 1 {
				t.Errorf("%v, and VID 1 is dead", d)
			}
		}
	}
}

// A pair that a failover has moved is taken as it is, is left alone until that is over, and the log
// tells of the failover.
func TestControlLeavesAFailoversPairsAlone(t *testing.T) {
	w, moved, stayed := collision(t)
	w.step(both(moved, stayed))
	dead, others := deadFor(moved, false, 2), deadFor(stayed, false, 2, 3, 4)
	w.tell = func(s *control.Sample) {
		dead(s)
		others(s)              // or it would be moved, and not this one
		if s.Node == moved.B { // the other end does not know it yet
			s.Moved = append(s.Moved, moved.A)
		}
	}
	w.set(moved, 1) // where stayed is
	w.old = nil
	w.wants(both(moved, stayed))
	for range 6 * int(rest/period) {
		w.run(period)
		for _, d := range w.decide() {
			if d.Change.Pair == moved {
				t.Errorf("%v, and a failover has it", d)
			}
		}
	}
	w.tell = nil
	w.set(moved, 2)
	for range 3 {
		w.run(period)
		w.decide()
	}
	var why []string
	for _, d := range w.control.Log(nil) {
		if d.Change.Pair == moved && d.Reason == control.External {
			why = append(why, d.String())
		}
	}
	if want := []string{
		"pair 0-4: VID 2 -> 1: its frames have that VID: a failover has moved it",
		"pair 0-4: VID 1 -> 2: its frames have that VID: a failover has taken it back",
	}; !slices.Equal(why, want) {
		t.Errorf("log:\n%s\nwant\n%s", strings.Join(why, "\n"), strings.Join(want, "\n"))
	}
}
