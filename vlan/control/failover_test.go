package control_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
)

var (
	low, high = transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2} // low decides
	probed    = control.FailoverConfig{
		VIDs:  []transport.VID{10, 20, 30},
		Probe: 100 * time.Millisecond, StandbyInterval: 100 * time.Millisecond, Timeout: 50 * time.Millisecond, Misses: 3, WaitToRestore: time.Second,
	}
)

// end is one station with one peer, whose pair prefers VID 10.
type end struct {
	t      *testing.T
	f      *control.Failover
	now    monotime.Time
	peer   transport.MAC
	answer map[transport.VID]bool // whether probes by it are answered, at once
	steps  []control.FailoverStep // since they were looked at last
}

func newEnd(t *testing.T, self, peer transport.MAC) *end {
	f, err := control.NewFailover(self, probed)
	if err != nil {
		t.Fatal(err)
	}
	e := &end{t: t, f: f, now: monotime.At(time.Hour), peer: peer, answer: map[transport.VID]bool{10: true, 20: true, 30: true}}
	if _, err := f.SetPeer(e.now, peer, 10, nil); err != nil {
		t.Fatal(err)
	}
	return e
}

// take notes steps, and answers the probes among them.
func (e *end) take(steps []control.FailoverStep) {
	for _, s := range steps {
		s.Body = bytes.Clone(s.Body)
		e.steps = append(e.steps, s)
		if s.Body != nil && e.answer[s.VID] {
			e.take(e.f.Answered(e.now, e.peer, s.VID, s.Body, nil))
		}
	}
}

func (e *end) run(d time.Duration) {
	end := e.now.Add(d)
	for {
		at, ok := e.f.Deadline()
		if !ok || at.After(end) {
			break
		}
		e.now = at
		e.take(e.f.Advance(e.now, nil))
	}
	e.now = end
}

// until runs until the path has a state, and returns how long that took.
func (e *end) until(vid transport.VID, want control.PathState) time.Duration {
	e.t.Helper()
	for start := e.now; e.now.Sub(start) < time.Minute; e.run(time.Millisecond) {
		if e.state(vid) == want {
			return e.now.Sub(start)
		}
	}
	e.t.Fatalf("VID %d is %v, and did not become %v", vid, e.state(vid), want)
	return 0
}

func (e *end) state(vid transport.VID) control.PathState {
	for _, p := range e.f.Paths() {
		if p.VID == vid {
			return p.State
		}
	}
	e.t.Fatalf("no path by VID %d", vid)
	return 0
}

// took returns the VIDs that were probed, and the moves, since it was last called.
func (e *end) took() (probes map[transport.VID]int, moves []control.FailoverStep) {
	probes = map[transport.VID]int{}
	for _, s := range e.steps {
		if s.Body != nil {
			probes[s.VID]++
		} else {
			moves = append(moves, s)
		}
	}
	e.steps = nil
	return probes, moves
}

// Each row of the table in Failover's comment.
func TestFailoverStates(t *testing.T) {
	up := func(t *testing.T) *end {
		e := newEnd(t, low, high)
		e.run(time.Second)
		e.took()
		return e
	}
	suspect := func(t *testing.T) *end {
		e := up(t)
		e.answer[10] = false
		e.until(10, control.PathSuspect)
		return e
	}
	down := func(t *testing.T) *end {
		e := suspect(t)
		e.until(10, control.PathDown)
		return e
	}
	holding := func(t *testing.T) *end {
		e := down(t)
		e.answer[10] = true
		e.until(10, control.PathWaitToRestore)
		e.took()
		return e
	}
	expectMove := func(t *testing.T, e *end, want control.FailoverStep) {
		t.Helper()
		want.Peer = high
		if _, moves := e.took(); len(moves) != 1 || fmt.Sprint(moves[0]) != fmt.Sprint(want) {
			t.Errorf("moves %+v, want %+v", moves, want)
		}
	}
	for _, row := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"up, answer: up", func(t *testing.T) {
			e := up(t)
			e.run(10 * time.Second)
			if probes, moves := e.took(); e.state(10) != control.PathUp || len(moves) != 0 || probes[10] != 100 {
				t.Errorf("%v, %d probes in 10 s, moves %v", e.state(10), probes[10], moves)
			}
		}},
		{"up, probe missed: suspect, probes all paths at once", func(t *testing.T) {
			e := up(t)
			e.answer[10] = false
			for e.state(10) == control.PathUp {
				e.took()
				e.run(time.Millisecond)
			}
			if probes, moves := e.took(); probes[10] != 1 || probes[20] != 1 || probes[30] != 1 || len(moves) != 0 {
				t.Errorf("probes %v, moves %v", probes, moves)
			}
		}},
		{"suspect, answer: up", func(t *testing.T) {
			e := suspect(t)
			e.answer[10] = true
			if d := e.until(10, control.PathUp); d > probed.Timeout {
				t.Errorf("took %v", d)
			}
		}},
		{"suspect, a late answer: up", func(t *testing.T) {
			e := suspect(t)
			late := e.steps[len(e.steps)-1]
			for _, s := range e.steps {
				if s.VID == 10 && s.Body != nil {
					late = s
				}
			}
			e.run(probed.Timeout + time.Millisecond)
			e.take(e.f.Answered(e.now, high, 10, late.Body, nil))
			if e.state(10) != control.PathUp {
				t.Errorf("%v", e.state(10))
			}
		}},
		{"suspect, probe missed: suspect, probes it again at once", func(t *testing.T) {
			e := suspect(t)
			e.took()
			e.run(probed.Timeout)
			if probes, moves := e.took(); e.state(10) != control.PathSuspect || probes[10] != 1 || len(moves) != 0 {
				t.Errorf("%v, probes %v, moves %v", e.state(10), probes, moves)
			}
		}},
		{"suspect, as many missed as are too many: down, decides", func(t *testing.T) {
			e := down(t)
			if vid, _ := e.f.VID(high); vid == 10 {
				t.Error("the pair was left where nothing comes through")
			}
			_, moves := e.took()
			if len(moves) != 1 || moves[0].From != 10 || moves[0].Reason != control.MoveMissed || moves[0].Alive {
				t.Errorf("moves %+v", moves)
			}
		}},
		{"suspect, as many missed by all paths: down, all at once, not moved", func(t *testing.T) {
			e := up(t)
			clear(e.answer)
			e.until(10, control.PathDown)
			_, moves := e.took()
			if e.state(20) != control.PathDown || e.state(30) != control.PathDown || len(moves) != 0 {
				t.Errorf("%v, %v, moves %v", e.state(20), e.state(30), moves)
			}
		}},
		{"suspect, probe missed while this end stood still: not missed, once", func(t *testing.T) {
			e := suspect(t)
			for range probed.Misses - 1 { // one was missed in time
				at, _ := e.f.Deadline()
				e.now = at.Add(300 * time.Millisecond)
				e.take(e.f.Advance(e.now, nil))
				if e.state(10) != control.PathSuspect {
					t.Fatalf("%v when it has just gone on", e.state(10))
				}
				again, _ := e.f.Deadline()
				if again.Sub(e.now) > probed.Timeout {
					t.Fatalf("it waits %v longer, want %v at most", again.Sub(e.now), probed.Timeout)
				}
				e.run(probed.Timeout)
			}
			if e.state(10) != control.PathDown {
				t.Errorf("%v, want it down: it did not answer while this end went on, either", e.state(10))
			}
		}},
		{"down, answer: holding, not taken back yet", func(t *testing.T) {
			e := holding(t)
			e.run(probed.WaitToRestore - 10*time.Millisecond)
			if _, moves := e.took(); e.state(10) != control.PathWaitToRestore || len(moves) != 0 {
				t.Errorf("%v, moves %v", e.state(10), moves)
			}
		}},
		{"down, an answer that comes late: holding", func(t *testing.T) {
			e := down(t)
			var body []byte // of the probe that went when it was given up
			for _, s := range e.steps {
				if s.VID == 10 && s.Body != nil {
					body = s.Body
				}
			}
			e.run(probed.Timeout + probed.Timeout/5) // it was missed, and the next one is not due
			e.take(e.f.Answered(e.now, high, 10, body, nil))
			if e.state(10) != control.PathWaitToRestore {
				t.Errorf("%v", e.state(10))
			}
		}},
		{"down, probe missed: down", func(t *testing.T) {
			e := down(t)
			e.took()
			e.run(10 * time.Second)
			if probes, moves := e.took(); e.state(10) != control.PathDown || len(moves) != 0 || probes[10] < 50 {
				t.Errorf("%v, probes %v, moves %v", e.state(10), probes, moves)
			}
		}},
		{"holding, answer after the hold time: up, taken back", func(t *testing.T) {
			e := holding(t)
			from, _ := e.f.VID(high)
			if d := e.until(10, control.PathUp); d < probed.WaitToRestore-time.Millisecond || d > probed.WaitToRestore+probed.Probe {
				t.Errorf("after %v", d)
			}
			expectMove(t, e, control.FailoverStep{VID: 10, From: from, Reason: control.MoveHeld, Alive: true})
		}},
		{"holding, probe missed: holding, from the beginning", func(t *testing.T) {
			e := holding(t)
			e.run(probed.WaitToRestore / 2)
			e.answer[10] = false
			e.run(probed.Probe + probed.Timeout)
			e.answer[10] = true
			if d := e.until(10, control.PathUp); d < probed.WaitToRestore-probed.Timeout {
				t.Errorf("up again %v after a miss", d)
			}
		}},
		{"holding, as many missed as are too many: down", func(t *testing.T) {
			e := holding(t)
			e.answer[10] = false
			if d := e.until(10, control.PathDown); d > probed.Probe+3*probed.Timeout {
				t.Errorf("took %v", d)
			}
		}},
		{"any, its link is down: down, decides, probes no more", func(t *testing.T) {
			e := up(t)
			e.take(e.f.SetLink(e.now, false, nil, 10))
			vid, _ := e.f.VID(high)
			expectMove(t, e, control.FailoverStep{VID: vid, From: 10, Reason: control.MoveLink})
			e.run(10 * time.Second)
			if probes, _ := e.took(); e.state(10) != control.PathDown || probes[10] != 0 || vid == 10 {
				t.Errorf("%v, probes %v, VID %d", e.state(10), probes, vid)
			}
		}},
		{"down, its link is up: probes at once", func(t *testing.T) {
			e := up(t)
			e.take(e.f.SetLink(e.now, false, nil, 10))
			e.took()
			e.take(e.f.SetLink(e.now, true, nil, 10))
			if probes, _ := e.took(); probes[10] == 0 || e.state(10) != control.PathWaitToRestore {
				t.Errorf("%v, probes %v", e.state(10), probes)
			}
		}},
	} {
		t.Run(row.name, row.test)
	}
}

// An end that is late always, as on a machine that is starved, finds a dead path all the same.
func TestFailoverOfAnEndThatIsLateAlways(t *testing.T) {
	for _, late := range []time.Duration{time.Millisecond, 20 * time.Millisecond, probed.Timeout, 200 * time.Millisecond} {
		e := newEnd(t, low, high)
		advance := func() {
			at, _ := e.f.Deadline()
			e.now = at.Add(late)
			e.take(e.f.Advance(e.now, nil))
		}
		for range 100 {
			advance()
		}
		if _, moves := e.took(); len(moves) != 0 {
			t.Errorf("late by %v: moves %v, though all answer", late, moves)
		}
		e.answer[10] = false
		cut := e.now
		for vid := transport.VID(10); vid == 10; vid, _ = e.f.VID(high) {
			advance()
			excuse := min(late, probed.Timeout)
			misses, putOffs := time.Duration(probed.Misses+1)*(probed.Timeout+2*late+excuse), time.Duration(probed.Misses)*(excuse+late)
			if limit := probed.Probe + late + misses + putOffs; e.now.Sub(cut) > limit {
				t.Fatalf("late by %v: a dead path is in use for %v, want %v at most", late, e.now.Sub(cut), limit)
			}
		}
	}
}

// Pairs that a dead VID carried are spread over the others.
func TestFailoverSpreadsWhatADeadVIDCarried(t *testing.T) {
	f, err := control.NewFailover(transport.MAC{2}, control.FailoverConfig{VIDs: []transport.VID{1, 2, 3, 4, 5}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	for k := range 40 {
		if _, err := f.SetPeer(now, transport.MAC{4, 0, 0, 0, 0, byte(k)}, 3, nil); err != nil {
			t.Fatal(err)
		}
	}
	to := map[transport.VID]int{}
	for _, s := range f.SetLink(now, false, nil, 3) {
		if s.Body == nil {
			to[s.VID]++
		}
	}
	if to[1] != 10 || to[2] != 10 || to[4] != 10 || to[5] != 10 {
		t.Errorf("40 pairs went to %v, want 10 to each", to)
	}
}

// Both ends are told another VID: each goes there at once, and is not called back by news from
// before.
func TestFailoverGoesWhereItIsTold(t *testing.T) {
	a, b := newEnd(t, low, high), newEnd(t, high, low)
	hears := func() { b.take(b.f.Heard(b.now, low, 1, a.news(t), nil)) }
	told := func(e *end) {
		e.took()
		steps, err := e.f.SetPeer(e.now, e.peer, 20, nil)
		if err != nil {
			t.Fatal(err)
		}
		e.take(steps)
		if _, moves := e.took(); len(moves) != 1 || moves[0].VID != 20 || moves[0].Reason != control.MoveTold || !moves[0].Alive {
			t.Errorf("moves %+v", moves)
		}
	}
	hears()
	told(b)
	hears() // that the other one was not told yet
	if vid, _ := b.f.VID(low); vid != 20 {
		t.Errorf("VID %d, want 20", vid)
	}
	told(a)
	hears()
	if vid, _ := b.f.VID(low); vid != 20 {
		t.Errorf("VID %d, want 20", vid)
	}
	// Had only this end been told, the deciding one's choice would count in the end.
	c := newEnd(t, high, low)
	other := newEnd(t, low, high)
	c.take(c.f.Heard(c.now, low, 1, other.news(t), nil))
	steps, _ := c.f.SetPeer(c.now, low, 20, nil)
	c.take(steps)
	c.run(probed.WaitToRestore)
	other.run(probed.WaitToRestore)
	c.take(c.f.Heard(c.now, low, 1, other.news(t), nil))
	if vid, _ := c.f.VID(low); vid != 10 {
		t.Errorf("VID %d, want 10: the deciding end was not told", vid)
	}
}

// The end that does not decide was told to use a VID that has died without its knowing yet. When it
// knows, it is where the other end is at once, and does not wait until its own wish is old.
func TestFailoverLeavesADeadWish(t *testing.T) {
	e, other := newEnd(t, high, low), newEnd(t, low, high)
	hears := func() { e.take(e.f.Heard(e.now, low, 1, other.news(t), nil)) }
	hears()
	e.answer[20] = false
	steps, err := e.f.SetPeer(e.now, low, 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.take(steps)
	hears()
	if vid, _ := e.f.VID(low); vid != 20 {
		t.Errorf("VID %d, want 20: it is not known to be dead yet", vid)
	}
	if took := e.until(20, control.PathDown); took >= probed.WaitToRestore {
		t.Fatalf("it took %v to find out, and Hold is %v", took, probed.WaitToRestore)
	}
	other.run(e.now.Sub(other.now))
	hears()
	if vid, _ := e.f.VID(low); vid != 10 {
		t.Errorf("VID %d, want 10: where the deciding end is", vid)
	}
}

func TestFailoverRefusesBadConfiguration(t *testing.T) {
	for _, c := range []struct {
		cfg  control.FailoverConfig
		text string
	}{
		{control.FailoverConfig{}, "failover: 0 VIDs (want 1 to 64)"},
		{control.FailoverConfig{VIDs: []transport.VID{1, 0}}, "VID 0 (want 1 to 4094)"},
		{control.FailoverConfig{VIDs: []transport.VID{4095}}, "VID 4095 (want 1 to 4094)"},
		{control.FailoverConfig{VIDs: []transport.VID{7, 7}}, "VID 7 is listed twice"},
		{control.FailoverConfig{VIDs: []transport.VID{7}, WaitToRestore: -1}, "wait to restore -1ns"},
		{control.FailoverConfig{VIDs: []transport.VID{7}, Timeout: math.MaxInt64}, "times of 1ms to 24h0m0s"},
		{control.FailoverConfig{VIDs: []transport.VID{7}, Timeout: time.Hour, Misses: math.MaxInt}, "misses of 1000 at most"},
	} {
		if _, err := control.NewFailover(low, c.cfg); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.text)
		}
	}
	if _, err := control.NewFailover(low, control.FailoverConfig{VIDs: []transport.VID{4095}}); !errors.Is(err, transport.ErrBadTag) {
		t.Errorf("%v, want ErrBadTag", err)
	}
	f, _ := control.NewFailover(low, probed)
	for _, c := range []struct {
		peer transport.MAC
		vid  transport.VID
		text string
	}{
		{high, 11, "VID 11 is not watched (want one of [10 20 30])"},
		{low, 10, "not the address of another station"},
		{transport.Broadcast, 10, "not the address of another station"},
	} {
		if _, err := f.SetPeer(monotime.At(1), c.peer, c.vid, nil); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v by %d: %v, want %q", c.peer, c.vid, err, c.text)
		}
	}
}

func TestFailoverForgetsRemovedPeers(t *testing.T) {
	e := newEnd(t, low, high)
	e.f.RemovePeer(high)
	if _, ok := e.f.Deadline(); ok || len(e.f.Paths()) != 0 {
		t.Error("something is left of the peer")
	}
	if vid, ok := e.f.VID(high); ok || vid != 0 {
		t.Error("a VID of a peer that was removed")
	}
}
