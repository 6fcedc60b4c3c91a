package shm

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// Frames that nobody wants hold a Poll for a while only; what is behind them comes with the next one.
func TestPoll_FramesThatNobodyWants(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(other.Stations()) == 1 })
	frames := make([]transport.Frame, maxLooks, maxLooks+1)
	for i := range frames {
		frames[i].Dst = transport.MAC{3, 0, 0, 0, 0, 1} // a group that l has not joined
	}
	frames = append(frames, transport.Frame{Dst: l.MAC(), Payload: []byte("wanted")})
	if n, err := other.Send(frames); n != len(frames) || err != nil {
		t.Fatal(n, err)
	}
	in := make([]transport.Frame, 2)
	for want := range 2 {
		if !l.pending() {
			t.Error("a Wait would not end")
		}
		if n, err := l.Poll(in); n != want || err != nil {
			t.Errorf("Poll %d: %d frames, %v", want, n, err)
		}
	}
}
