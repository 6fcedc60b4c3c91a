package wire

import (
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// What is read is written the same.
func FuzzProbeHead(f *testing.F) {
	b := make([]byte, ProbeHeadLen)
	(&ProbeHead{Number: 7, Flags: 1, ReplyTCI: 2, ReceivedTCI: 3, Incarnation: 4}).Put(b)
	for _, v := range fuzzseed.Variants(b) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again ProbeHead
		if h.Parse(b) != (len(b) >= ProbeHeadLen) {
			t.Fatalf("%d bytes: %+v", len(b), h)
		}
		if len(b) < ProbeHeadLen {
			return
		}
		out := make([]byte, ProbeHeadLen)
		h.Put(out)
		if !again.Parse(out) || again != h {
			t.Errorf("%+v, then %+v", h, again)
		}
	})
}
