package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// A failover's change and a plan's that come at once do not make the plan's routes urgent: programs
// drain those, so that no message overtakes another. The failover's come first, and only the last
// event has the version of all.
func TestUrgentRoutesComeAlone(t *testing.T) {
	peer := transport.MAC{2, 0, 0, 0, 0, 2}
	for _, isNew := range []bool{false, true} { // has the program been told anything yet?
		s := testServer(t, "")
		var events []api.SessionEvent
		write := func(e *api.SessionEvent) error { events = append(events, *e); return nil }
		sess, err := s.join(&api.SessionStart{Session: "s"}, "", func() {}, write)
		if err != nil {
			t.Fatal(err)
		}
		if !isNew {
			s.tell(sess, false)
		}
		told := sess.told
		if err := s.Override("no answer", api.Change{A: s.cfg.MAC, B: peer, VID: 2}); err != nil {
			t.Fatal(err)
		}
		var p api.Plan
		if err := json.Unmarshal([]byte(otherPlan), &p); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetPlan(&p.Plan, "another default"); err != nil {
			t.Fatal(err)
		}
		events = nil
		s.tell(sess, false)
		var got []string
		for _, e := range events {
			var dsts []string
			for _, r := range e.Routes {
				dsts = append(dsts, fmt.Sprintf("%v by %d", r.Dst, r.VID))
			}
			slices.Sort(dsts)
			got = append(got, fmt.Sprint(e.Version, " urgent=", e.Urgent, " full=", e.Full, " ", dsts))
		}
		const failovers, plans = "02:00:00:00:00:02 by 2", "ff:ff:ff:ff:ff:ff by 2"
		want := []string{
			fmt.Sprint(told, " urgent=true full=false [", failovers, "]"),
			fmt.Sprint(s.version, " urgent=false full=false [", plans, "]"),
		}
		if isNew {
			want = []string{
				fmt.Sprint(s.version, " urgent=false full=true [", failovers, " ", plans, "]"),
				fmt.Sprint(s.version, " urgent=true full=false [", failovers, "]"),
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("new %v: events\n%q, want\n%q", isNew, got, want)
		}
		if err := s.Override("again", api.Change{A: s.cfg.MAC, B: peer, VID: 1}); err != nil {
			t.Fatal(err)
		}
		events = nil
		if s.tell(sess, false); len(events) != 1 || !events[0].Urgent || events[0].Version != s.version {
			t.Errorf("a failover's change alone: %+v, want one event", events)
		}
		_ = s.Close()
	}
}
