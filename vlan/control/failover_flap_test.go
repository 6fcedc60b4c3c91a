package control_test

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/control"
)

// A path that goes down soon after it was restored has to hold for twice as long each time, up to a
// bound; one that is up for long in between has to hold as in the beginning. So a cable that is
// down for a second of four moves its pair a few times and not twice in each of them.
func TestFailoverDampsFlappingPaths(t *testing.T) {
	e := newEnd(t, low, high)
	e.run(time.Second)
	hold := func() time.Duration {
		t.Helper()
		e.answer[10] = false
		e.until(10, control.PathDown)
		e.answer[10] = true
		e.until(10, control.PathWaitToRestore)
		return e.until(10, control.PathUp).Round(100 * time.Millisecond)
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 16, 16} {
		if got := hold(); got != want*probed.WaitToRestore {
			t.Errorf("held for %v, want %v", got, want*probed.WaitToRestore)
		}
	}
	e.run(9 * control.MaxHold * probed.WaitToRestore)
	if got := hold(); got != probed.WaitToRestore {
		t.Errorf("up for long: held for %v, want %v", got, probed.WaitToRestore)
	}
	e.took()
	for range 60 {
		e.answer[10] = false
		e.run(time.Second)
		e.answer[10] = true
		e.run(3 * time.Second)
	}
	if _, moves := e.took(); len(moves) > 8 {
		t.Errorf("%d moves in four minutes of a path that is down for a second of four, want at most 8", len(moves))
	}
}

// A path whose peer begins late is not one that flaps when it goes down for the first time.
func TestFailoverDampsNoLatePeer(t *testing.T) {
	e := newEnd(t, low, high)
	for _, vid := range probed.VIDs {
		e.answer[vid] = false
	}
	e.until(10, control.PathDown)
	for _, vid := range probed.VIDs {
		e.answer[vid] = true
	}
	e.until(10, control.PathUp)
	for _, want := range []time.Duration{1, 2} {
		e.answer[10] = false
		e.until(10, control.PathDown)
		e.answer[10] = true
		e.until(10, control.PathWaitToRestore)
		if got := e.until(10, control.PathUp).Round(100 * time.Millisecond); got != want*probed.WaitToRestore {
			t.Errorf("held for %v, want %v", got, want*probed.WaitToRestore)
		}
	}
}

// A failover that takes up where another one has ended does not take the path that was down for up
// before that has held.
func TestFailoverAdoptsAMovedPair(t *testing.T) {
	for _, self := range []bool{true, false} {
		e := newEnd(t, low, high)
		if !self {
			e = newEnd(t, high, low)
		}
		e.answer[10] = false
		e.f.Adopt(e.now, e.peer, 30, nil)
		vid := func() (v int) { now, _ := e.f.VID(e.peer); return int(now) }
		if vid() != 30 || e.state(10) != control.PathDown {
			t.Fatalf("VID %d, and VID 10 is %v", vid(), e.state(10))
		}
		e.run(3 * probed.WaitToRestore)
		if vid() != 30 {
			t.Errorf("moved to VID %d while VID 10 is down", vid())
		}
		e.answer[10] = true
		e.run(probed.WaitToRestore / 2)
		if vid() != 30 {
			t.Errorf("moved to VID %d before VID 10 has held", vid())
		}
		e.run(probed.WaitToRestore)
		if want := 10; self && vid() != want { // the other end follows it
			t.Errorf("VID %d, want %d: it has held", vid(), want)
		}
	}
	e := newEnd(t, low, high)
	e.f.Adopt(e.now, high, 10, nil)
	e.f.Adopt(e.now, high, 99, nil)
	e.f.Adopt(e.now, low, 20, nil)
	if v, _ := e.f.VID(high); v != 10 || e.state(10) != control.PathUp {
		t.Errorf("VID %d, which is %v", v, e.state(10))
	}
}

// The revision grows when a path goes down, answers again and is up again, and at nothing else.
func TestFailoverRevision(t *testing.T) {
	e := newEnd(t, low, high)
	e.run(time.Second)
	if r := e.f.Revision(); r != 0 {
		t.Errorf("%d at the beginning", r)
	}
	e.answer[10] = false
	e.until(10, control.PathSuspect)
	e.answer[10] = true
	e.until(10, control.PathUp)
	if r := e.f.Revision(); r != 0 {
		t.Errorf("%d after a probe that was missed", r)
	}
	e.answer[10] = false
	e.run(2 * time.Second)
	if r := e.f.Revision(); r != 1 {
		t.Errorf("%d after a path went down, want 1", r)
	}
	e.answer[10] = true
	e.until(10, control.PathWaitToRestore)
	if r := e.f.Revision(); r != 2 {
		t.Errorf("%d when it answers again, want 2", r)
	}
	e.until(10, control.PathUp)
	if r := e.f.Revision(); r != 3 {
		t.Errorf("%d when it is up again, want 3", r)
	}
}
