package control_test

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
)

// A peer that comes while a link is down is not sent to by that link, nor probed: neither end waits
// for its probes to be missed.
func TestFailoverOfAPeerThatComesWhileALinkIsDown(t *testing.T) {
	for name, ends := range map[string][2]transport.MAC{"deciding": {low, high}, "following": {high, low}} {
		t.Run(name, func(t *testing.T) {
			f, err := control.NewFailover(ends[0], probed)
			if err != nil {
				t.Fatal(err)
			}
			now := monotime.At(time.Hour)
			f.SetLink(now, false, nil, 10)
			steps, err := f.SetPeer(now, ends[1], 10, nil)
			if err != nil {
				t.Fatal(err)
			}
			if f.Revision() == 0 {
				t.Error("nobody is told that the path is down")
			}
			vid, _ := f.VID(ends[1])
			if decides := ends[0] == low; decides != (vid != 10) {
				t.Errorf("the pair uses VID %d", vid)
			}
			if paths := f.Paths(); paths[0].VID != 10 || paths[0].State != control.PathDown || paths[1].State != control.PathUp {
				t.Errorf("paths %v, want VID 10 down and the others up", paths)
			}
			probes := make(map[transport.VID]int)
			for end := now.Add(time.Second); ; steps = f.Advance(now, nil) {
				for _, s := range steps {
					if s.Body != nil {
						probes[s.VID]++
					} else if s.Reason != control.MoveLink {
						t.Errorf("a move %v, want one for the link alone", s)
					}
				}
				at, ok := f.Deadline()
				if !ok || at.After(end) {
					break
				}
				now = at
			}
			if probes[10] > 0 || probes[20] == 0 || probes[30] == 0 {
				t.Errorf("probes by VID %v, want none by 10", probes)
			}
			if steps := f.SetLink(now, true, nil, 10); len(steps) != 1 || steps[0].VID != 10 || steps[0].Body == nil {
				t.Errorf("when the link is up: %v, want a probe by VID 10", steps)
			}
		})
	}
}

// A pair that is adopted stays on the VID that it uses while the link of the one that it prefers is
// down: nobody is told of another choice. If its own link is down, too, it is moved off that.
func TestFailoverAdoptsAPairWhileALinkIsDown(t *testing.T) {
	const own = 0
	for name, down := range map[string][]transport.VID{
		"the preferred one's": {10}, "its own": {own}, "both": {10, own},
	} {
		for _, inForce := range []transport.VID{20, 30} {
			t.Run(name, func(t *testing.T) {
				f, err := control.NewFailover(low, probed)
				if err != nil {
					t.Fatal(err)
				}
				now := monotime.At(time.Hour)
				want := inForce
				for _, vid := range down {
					if vid == own {
						vid, want = inForce, 50-inForce // of 20 and 30 the other one
					}
					f.SetLink(now, false, nil, vid)
				}
				if _, err := f.SetPeer(now, high, 10, nil); err != nil {
					t.Fatal(err)
				}
				steps := f.Adopt(now, high, inForce, nil)
				if vid, _ := f.VID(high); vid != want {
					t.Errorf("of %d the pair is on %d, want %d", inForce, vid, want)
				}
				for _, s := range steps {
					if s.Body == nil && (s.From != inForce || s.VID != want || want == inForce) {
						t.Errorf("of %d a move %+v, want one to %d", inForce, s, want)
					}
				}
				if paths := f.Paths(); paths[0].State != control.PathDown {
					t.Errorf("VID 10 is %v", paths[0].State)
				}
			})
		}
	}
}
