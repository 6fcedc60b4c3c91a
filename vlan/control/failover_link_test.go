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
