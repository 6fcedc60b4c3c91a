package reliable

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim/explore"
)

var searchStates = flag.Int("search.states", 500, "TestSearch: states of one scope, at most")

// scope bounds a search: how often each thing may happen in one history.
type scope struct {
	records                             [2]int // of each end
	losses, duplicates, swaps, restarts int
}

// All states that two ends can reach in any order of events, with one loss, one duplicate, one
// reordered frame, one restart. Each history ends with all records delivered and nothing to do.
func TestSearch(t *testing.T) {
	sum := figures{}
	for _, sc := range []scope{
		{records: [2]int{2, 0}, losses: 1, duplicates: 1, swaps: 1},
		{records: [2]int{1, 1}, losses: 1, duplicates: 1, swaps: 1},
		{records: [2]int{1, 1}, losses: 1, duplicates: 1, restarts: 1},
	} {
		r := explore.All(func() explore.World { return newWorld(t, sc) }, *searchStates)
		t.Logf("%+v: %d states, %d ends, cut short: %t", sc, r.States, r.Ends, r.Cut)
		if r.Wrong != "" {
			t.Errorf("%+v: %s\nhistory %v", sc, r.Wrong, r.History)
		}
		sum["states"] += uint64(r.States)
		sum["ends"] += uint64(r.Ends)
		sum["searches"]++
		if r.Cut {
			sum["searches cut short"]++
		}
	}
	t.Logf("figures %v", sum)
}

// world is one state: two ends and the frames between them.
type world struct {
	*pair
	scope
	lives uint32
	ticks int
}

func newWorld(t *testing.T, sc scope) *world {
	return &world{pair: newPair(t, HeaderLen+recordHeader+1), scope: sc, lives: 2}
}

func (w *world) Wrong() string { return w.wrong }

// State is the two connections, what is between them, and what was delivered.
func (w *world) State() (any, monotime.Time) {
	type streamState struct {
		From, To  int
		Lane      Lane
		Sent, Got uint32
	}
	var streams []streamState
	for _, s := range w.streams {
		streams = append(streams, streamState{s.from, s.to, s.lane, s.sent, s.got})
	}
	return []any{w.ends[0].c, w.ends[1].c, w.inTransit, w.scope, streams}, w.now
}

const (
	writing    = "write"
	delivering = "deliver"
	losing     = "lose"
	doubling   = "double"
	swapping   = "swap"
	restarting = "restart"
	ticking    = "tick"

	searchTicks = 300
)

// Moves are the events that may come next. Time passes only when nothing else can happen.
func (w *world) Moves() (all []explore.Move) {
	event := func(kind string, end int) { all = append(all, explore.Move{Kind: kind, To: end}) }
	for i := range w.ends {
		if w.records[i] > 0 {
			event(writing, i)
		}
		frames := len(w.inTransit[i])
		if frames > 0 {
			event(delivering, i)
		}
		if frames > 0 && w.losses > 0 {
			event(losing, i)
		}
		if frames > 0 && w.duplicates > 0 {
			event(doubling, i)
		}
		if frames > 1 && w.swaps > 0 {
			event(swapping, i)
		}
	}
	if _, ok := w.deadline(); ok && len(all) == 0 && w.ticks < searchTicks {
		event(ticking, 0)
	}
	if w.restarts > 0 && len(all) > 0 { // a restart at the very end changes nothing
		event(restarting, 0)
		event(restarting, 1)
	}
	return all
}

func (w *world) deadline() (at monotime.Time, ok bool) {
	for _, e := range w.ends {
		if t, is := e.c.Deadline(); is && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

func (w *world) Do(m explore.Move) {
	i := m.To
	switch frames := w.inTransit[i]; m.Kind {
	case writing:
		w.records[i]--
		w.ends[i].write(w.now, Requests, recordHeader+1)
	case delivering:
		w.inTransit[i] = slices.Clone(frames[1:])
		w.ends[i].receive(w.now, frames[0])
	case doubling:
		w.duplicates--
		w.ends[i].receive(w.now, frames[0])
	case losing:
		w.losses--
		w.inTransit[i] = slices.Clone(frames[1:])
	case swapping:
		w.swaps--
		w.inTransit[i] = slices.Delete(slices.Clone(frames), 1, 2)
		w.ends[i].receive(w.now, frames[1])
	case restarting:
		w.restarts--
		w.lives++
		w.restart(i, w.lives)
	case ticking:
		w.ticks++
		if at, _ := w.deadline(); at.After(w.now) {
			w.now = at
		}
		for _, e := range w.ends {
			if at, ok := e.c.Deadline(); ok && !w.now.Before(at) {
				e.advance(w.now)
			}
		}
	}
	for k, e := range w.ends {
		w.send(k)
		e.check()
		if e.c.stuck() {
			e.fail("%d has something to send, and neither a frame nor a deadline", k)
		}
	}
}

// End looks at a world in which nothing is left to happen.
func (w *world) End() string {
	for i, e := range w.ends {
		if at, ok := e.c.Deadline(); ok || !e.done() {
			return fmt.Sprintf("end %d is not done: deadline %v, %t", i, at, ok)
		}
		if w.lives > 2 {
			continue // what was under way when an end restarted is lost, and its owner was told
		}
		if s := w.streams[e.out[Requests]]; s.sent != s.got {
			return fmt.Sprintf("end %d has sent %d records, %d were delivered", i, s.sent, s.got)
		}
	}
	return ""
}
