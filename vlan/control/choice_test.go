package control

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// A path answers since it does at both ends: since the later one, of those where it waits to be
// restored.
func TestPath_AnswersSince(t *testing.T) {
	at := func(n int) monotime.Time { return monotime.At(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		state, reported PathState
		here, there     int
		want            monotime.Time
	}{
		{PathWaitToRestore, PathWaitToRestore, 5, 7, at(7)},
		{PathWaitToRestore, PathWaitToRestore, 7, 5, at(7)},
		{PathUp, PathWaitToRestore, 9, 5, at(5)},
		{PathWaitToRestore, PathUp, 5, 9, at(5)},
		{PathUp, PathUp, 5, 9, monotime.Time{}},
	} {
		p := path{state: c.state, reported: c.reported, since: at(c.here), reportedSince: at(c.there)}
		if got := p.answersSince(); got != c.want {
			t.Errorf("%v since %d s, and there %v since %d s: answers since %v, want %v",
				c.state, c.here, c.reported, c.there, got, c.want)
		}
	}
}

// An end that is late with each look puts the choice of a path off Misses times, and then moves.
func TestDecide_PutsOffMissesTimes(t *testing.T) {
	for _, misses := range []int{1, 3, 4} {
		f, err := NewFailover(transport.MAC{2}, FailoverConfig{VIDs: []transport.VID{10, 20}, Misses: misses})
		if err != nil {
			t.Fatal(err)
		}
		f.now = monotime.At(time.Hour)
		p := f.newPeer(transport.MAC{4}, 10)
		p.path(10).state = PathDown
		times := 0
		for ; p.current.vid == 10 && times < 10; times++ {
			f.now = f.now.Add(time.Second)
			f.holdOff = f.now.Add(time.Millisecond)
			f.decide(p, MoveMissed)
		}
		if want := misses + 1; times != want {
			t.Errorf("of %d misses: moved at look %d, want %d", misses, times, want)
		}
	}
}

func TestWord_OfNoState(t *testing.T) {
	for s, want := range map[State]string{Watching: "watching", Evaluating: "evaluating", Evaluating + 1: "unknown (3)", -1: "unknown (-1)"} {
		if got := s.String(); got != want {
			t.Errorf("%d is %q, want %q", int(s), got, want)
		}
	}
}
