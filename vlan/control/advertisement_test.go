package control_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
)

// What the two ends of a pair tell each other with their probes.

// news has one end's latest probe heard by the other.
func (e *end) news(t *testing.T) []byte {
	t.Helper()
	e.took()
	e.run(probed.Probe)
	for i := len(e.steps) - 1; i >= 0; i-- {
		if e.steps[i].Body != nil {
			return e.steps[i].Body
		}
	}
	t.Fatal("no probe")
	return nil
}

// The deciding end moves on the other's word, before it has missed a probe of its own; and the
// other follows.
func TestFailoverMovesOnThePeersReport(t *testing.T) {
	a, b := newEnd(t, low, high), newEnd(t, high, low)
	a.run(time.Second)
	b.run(time.Second)
	b.answer[10] = false
	b.took()
	b.until(10, control.PathDown)
	if vid, _ := b.f.VID(low); vid != 10 {
		t.Errorf("the end that follows has moved to VID %d by itself", vid)
	}
	b.run(0)
	last := b.steps[len(b.steps)-1] // it tells at once
	if last.Body == nil {
		t.Fatalf("the last step is %+v, want a probe", last)
	}
	a.took()
	a.take(a.f.Heard(a.now, high, 1, last.Body, nil))
	_, moves := a.took()
	if len(moves) != 1 || moves[0].Reason != control.MoveReported || moves[0].From != 10 {
		t.Fatalf("the deciding end: %+v, want it to move", moves)
	}
	b.took()
	b.take(b.f.Heard(b.now, low, 1, a.news(t), nil))
	if _, followed := b.took(); len(followed) != 1 || followed[0].VID != moves[0].VID || followed[0].Reason != control.MoveFollowed {
		t.Errorf("the end that follows: %+v, want VID %d", followed, moves[0].VID)
	}
	// When the report is old, and no new one comes, it does not count any more.
	a.run(time.Minute)
	if vid, _ := a.f.VID(high); vid != 10 {
		t.Errorf("VID %d a minute after the last report, want 10", vid)
	}
}

// News that others have overtaken is old.
func TestFailoverIgnoresOldNews(t *testing.T) {
	a, b := newEnd(t, low, high), newEnd(t, high, low)
	before := a.news(t)
	a.answer[10] = false
	a.until(10, control.PathDown)
	after := a.news(t)
	vid, _ := a.f.VID(high)
	b.take(b.f.Heard(b.now, low, 1, after, nil))
	b.take(b.f.Heard(b.now, low, 1, before, nil))
	if got, _ := b.f.VID(low); got != vid {
		t.Errorf("VID %d, want %d: the older news came last", got, vid)
	}
	b.take(b.f.Heard(b.now, low, 2, before, nil)) // of another life: not older
	if got, _ := b.f.VID(low); got != 10 {
		t.Errorf("VID %d, want 10: the peer has begun anew", got)
	}
}

// The golden vector of docs/wire-format.md.
func TestAdvertisementOnTheWire(t *testing.T) {
	f, err := control.NewFailover(low, probed)
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(0)
	if _, err := f.SetPeer(now, high, 20, nil); err != nil {
		t.Fatal(err)
	}
	steps := f.SetLink(now, false, nil, 30)
	want := []byte{0x11, 3, 0, 20, 0, 0, 0, 1, 0, 10, 0, 20, 0x30, 30}
	if len(steps) != 2 || !bytes.Equal(steps[0].Body, want) {
		t.Errorf("got %x, want %x", steps[0].Body, want)
	}
	doc, err := os.ReadFile("../../docs/wire-format.md")
	if err != nil || !bytes.Contains(doc, []byte("`11 03 0014 00000001 000a 0014 301e`")) {
		t.Errorf("the vector is not in docs/wire-format.md (%v)", err)
	}
}

// FuzzAdvertisement: whatever a peer says, nothing panics, no more is sent than a probe of each path
// and one of the news, and the pair is on a VID that is configured.
func FuzzAdvertisement(f *testing.F) {
	for _, v := range fuzzseed.Variants([]byte{0x11, 3, 0, 20, 0, 0, 0, 1, 0, 10, 0, 20, 0x30, 30}) {
		f.Add(v, true)
	}
	f.Add([]byte{0x11, 1, 0, 20, 0, 0, 0, 1, 0xf0, 10}, false)
	f.Add([]byte{0x11, 255, 0, 0, 0, 0, 0, 1}, false)
	f.Fuzz(func(t *testing.T, body []byte, answer bool) {
		for _, self := range []transport.MAC{{2}, {6}} {
			peer := transport.MAC{4}
			f, err := control.NewFailover(self, probed)
			if err != nil {
				t.Fatal(err)
			}
			now := monotime.At(time.Second)
			if _, err := f.SetPeer(now, peer, 10, nil); err != nil {
				t.Fatal(err)
			}
			f.Advance(now.Add(probed.Probe), nil)
			var steps []control.FailoverStep
			if answer {
				steps = f.Answered(now, peer, 20, body, nil)
			} else {
				steps = f.Heard(now, peer, 1, body, nil)
			}
			if len(steps) > 1+len(probed.VIDs) {
				t.Errorf("%d steps", len(steps))
			}
			if vid, _ := f.VID(peer); vid != 10 && vid != 20 && vid != 30 {
				t.Errorf("VID %d", vid)
			}
		}
	})
}
