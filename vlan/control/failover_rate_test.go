package control_test

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
)

// What watching costs, as the documents say: each peer is probed by its own VID every Probe, and by
// each of the others every StandbyInterval. Answers keep all paths up.
func TestFailoverProbesASecond(t *testing.T) {
	for peers, want := range map[int]int{15: 200, 1023: 13_300} {
		self := transport.MAC{2}
		f, err := control.NewFailover(self, control.FailoverConfig{VIDs: []transport.VID{10, 20, 30, 40}})
		if err != nil {
			t.Fatal(err)
		}
		now := monotime.At(time.Hour)
		probes := 0
		answer := func(steps []control.FailoverStep) {
			type probe struct {
				peer transport.MAC
				vid  transport.VID
				body string
			}
			var all []probe // steps are the core's memory
			for _, s := range steps {
				all = append(all, probe{s.Peer, s.VID, string(s.Body)})
			}
			probes += len(all)
			for _, p := range all {
				if more := f.Answered(now, p.peer, p.vid, []byte(p.body), nil); len(more) > 0 {
					t.Fatalf("an answer caused %+v", more)
				}
			}
		}
		for i := range peers {
			steps, err := f.SetPeer(now, transport.MAC{2, 0, 0, 1, byte(i >> 8), byte(i)}, 10, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer(steps)
		}
		const first, during = time.Second, 2 * time.Second
		for end := now.Add(first); ; {
			at, ok := f.Deadline()
			if !ok {
				t.Fatal("nothing is watched")
			}
			if at.After(end) {
				if probes == 0 || end != monotime.At(time.Hour).Add(first) {
					break
				}
				probes, end = 0, end.Add(during)
				continue
			}
			now = at
			answer(f.Advance(now, nil))
		}
		if got := probes / int(during/time.Second); got < want*95/100 || got > want*105/100 {
			t.Errorf("%d peers: %d probes a second, want %d", peers, got, want)
		}
	}
}
