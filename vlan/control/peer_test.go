package control

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// pairOf is a failover with one peer, whose pair prefers and uses VID 10 of 10, 20 and 30; nothing
// was probed yet.
func pairOf(t *testing.T, decides bool) (*Failover, *peer) {
	t.Helper()
	self := transport.MAC{6}
	if decides {
		self = transport.MAC{2}
	}
	f, err := NewFailover(self, FailoverConfig{VIDs: []transport.VID{10, 20, 30}})
	if err != nil {
		t.Fatal(err)
	}
	f.now = monotime.At(time.Hour)
	mac := transport.MAC{4}
	f.peers[mac] = f.newPeer(mac, 10)
	return f, f.peers[mac]
}

// The end with the lower address decides, and one alone.
func TestLowerAddressDecides(t *testing.T) {
	for _, c := range []struct {
		a, b transport.MAC
	}{{transport.MAC{2}, transport.MAC{4}}, {transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}}} {
		for _, ends := range [][2]transport.MAC{{c.a, c.b}, {c.b, c.a}} {
			f, err := NewFailover(ends[0], FailoverConfig{VIDs: []transport.VID{10}})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := f.newPeer(ends[1], 10).decides, ends[0] == c.a; got != want {
				t.Errorf("%v, with %v: decides %v, want %v", ends[0], ends[1], got, want)
			}
		}
	}
}

// A path's rank is the worse of what both ends see. The peer's suspicion does not count, nor a
// report that is older than the longest time between two, nor one that never came.
func TestRank(t *testing.T) {
	const old = 6 * time.Second // WaitToRestore and StandbyInterval
	for _, c := range []struct {
		here, there PathState
		ago         time.Duration // -1: never
		want        PathState
	}{
		{PathUp, PathUp, 0, PathUp}, {PathUp, PathSuspect, 0, PathUp}, {PathUp, PathWaitToRestore, 0, PathWaitToRestore},
		{PathUp, PathDown, 0, PathDown}, {PathSuspect, PathUp, 0, PathSuspect}, {PathDown, PathUp, 0, PathDown},
		{PathSuspect, PathSuspect, 0, PathSuspect}, {PathDown, PathSuspect, 0, PathDown},
		{PathWaitToRestore, PathDown, 0, PathDown}, {PathDown, PathWaitToRestore, 0, PathDown},
		{PathUp, PathDown, old, PathDown}, {PathUp, PathDown, old + 1, PathUp}, {PathUp, PathDown, -1, PathUp},
		{PathDown, PathUp, old + 1, PathDown},
	} {
		f, p := pairOf(t, true)
		path := p.path(20)
		path.state, path.reported = c.here, c.there
		if c.ago >= 0 {
			p.heard, p.heardAt = true, f.now.Add(-c.ago)
		}
		if got := f.rank(path); got != c.want {
			t.Errorf("%v here, %v there, %v ago: %v, want %v", c.here, c.there, c.ago, got, c.want)
		}
	}
}

// The end that follows goes where the deciding one is. If it was told to go elsewhere, it stays
// there for WaitToRestore as long as it hears the old choice, and its own path works.
func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		choice, before transport.VID
		told           time.Duration // the time until which what it was told counts
		state          PathState     // of the path in use
		want           transport.VID
	}{
		"a choice":                             {20, 0, 0, PathUp, 20},
		"where it is":                          {10, 0, 0, PathUp, 10},
		"a VID that is not watched":            {99, 0, 0, PathDown, 10},
		"none":                                 {0, 0, 0, PathUp, 10},
		"the choice of before":                 {20, 20, 0, PathUp, 20},
		"the choice of before, was told":       {20, 20, 1, PathUp, 10},
		"the choice of before, path suspect":   {20, 20, 1, PathSuspect, 10},
		"the choice of before, path restoring": {20, 20, 1, PathWaitToRestore, 20},
		"the choice of before, path dead":      {20, 20, 1, PathDown, 20},
		"another choice than before, was told": {20, 30, 1, PathUp, 20},
	} {
		f, p := pairOf(t, false)
		p.choice, p.ownUntil, p.current.state = c.before, f.now.Add(c.told), c.state
		f.follow(p, c.choice)
		if p.current.vid != c.want || p.choice != c.choice {
			t.Errorf("%s: VID %d, choice %d; want %d, %d", name, p.current.vid, p.choice, c.want, c.choice)
		}
		for _, s := range f.steps {
			if s.Body == nil && (s.From != 10 || s.VID != c.want || s.Reason != MoveFollowed || s.Alive != (c.state != PathDown)) {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

// SetPeer moves the pair to another preferred VID if that works. What the end that follows was told
// counts for WaitToRestore; the deciding end's choice counts in any case.
func TestSetPeer_Tells(t *testing.T) {
	for _, decides := range []bool{true, false} {
		for state, moves := range map[PathState]bool{PathUp: true, PathSuspect: true, PathWaitToRestore: false, PathDown: false} {
			f, p := pairOf(t, decides)
			p.path(20).state = state
			steps, err := f.SetPeer(f.now, p.mac, 20, nil)
			if err != nil {
				t.Fatal(err)
			}
			var until monotime.Time
			want := transport.VID(10)
			if moves {
				want = 20
				if !decides {
					until = f.now.Add(f.cfg.WaitToRestore)
				}
			}
			if p.prefer != 20 || p.current.vid != want || p.ownUntil != until {
				t.Errorf("decides %v, VID 20 %v: prefers %d, uses %d, its own until %v; want 20, %d, %v",
					decides, state, p.prefer, p.current.vid, p.ownUntil, want, until)
			}
			if (len(steps) > 0) != moves || moves && (steps[0].Reason != MoveTold || steps[0].From != 10 || steps[0].VID != 20 || !steps[0].Alive) {
				t.Errorf("decides %v, VID 20 %v: %+v", decides, state, steps)
			}
			if more, err := f.SetPeer(f.now, p.mac, 20, nil); err != nil || len(more) > 0 {
				t.Errorf("told again: %+v, %v", more, err)
			}
		}
	}
}

// The reason of a move says why the path in use is left, whatever was learned just now.
func TestReason(t *testing.T) {
	for _, c := range []struct {
		state    PathState
		linkDown bool
		learned  MoveReason
		want     MoveReason
	}{
		{PathUp, false, MoveHeld, MoveHeld}, {PathUp, false, MoveReported, MoveHeld}, {PathWaitToRestore, false, MoveMissed, MoveHeld},
		{PathDown, false, MoveMissed, MoveMissed}, {PathDown, false, MoveHeld, MoveMissed},
		{PathDown, false, MoveReported, MoveReported}, {PathDown, true, MoveReported, MoveLink},
		{PathDown, true, MoveHeld, MoveLink},
	} {
		f, p := pairOf(t, true)
		p.current.state, p.current.linkDown = c.state, c.linkDown
		if got := f.reason(p, c.learned); got != c.want {
			t.Errorf("%v, link down %v, learned %v: %v, want %v", c.state, c.linkDown, c.learned, got, c.want)
		}
	}
}

// Each path comes once in the order of preference, and the preferred one first.
func TestNth(t *testing.T) {
	for _, prefer := range []transport.VID{10, 20, 30} {
		f, p := pairOf(t, true)
		p.prefer = prefer
		seen := make(map[transport.VID]bool)
		for i := range p.paths {
			vid := f.nth(p, i).vid
			if seen[vid] || (i == 0) != (vid == prefer) {
				t.Errorf("prefers %d: number %d is VID %d, seen already: %v", prefer, i, vid, seen[vid])
			}
			seen[vid] = true
		}
	}
}

// An answer is awaited to the probes from the first to the last that may still be answered, modulo
// 2^32: while one is waited for, or was missed, or the path is down. By a link that is down, none
// is.
func TestAwaits(t *testing.T) {
	waiting, missed, down := path{waiting: true}, path{misses: 1, state: PathSuspect}, path{state: PathDown}
	for name, c := range map[string]struct {
		path        path
		first, last uint32
		number      uint32
		want        bool
	}{
		"waiting, the one":            {waiting, 7, 7, 7, true},
		"waiting, the first":          {waiting, 7, 9, 7, true},
		"waiting, the last":           {waiting, 7, 9, 9, true},
		"waiting, before":             {waiting, 7, 9, 6, false},
		"waiting, never sent":         {waiting, 7, 9, 10, false},
		"missed":                      {missed, 7, 9, 8, true},
		"missed, before":              {missed, 7, 9, 6, false},
		"down":                        {down, 7, 9, 8, true},
		"down, of before":             {down, 7, 6, 6, false},
		"up, an answer came already":  {path{}, 7, 7, 7, false},
		"restoring, likewise":         {path{state: PathWaitToRestore}, 7, 7, 7, false},
		"link is down":                {path{waiting: true, linkDown: true}, 7, 7, 7, false},
		"link is down, path, too":     {path{state: PathDown, linkDown: true}, 7, 7, 7, false},
		"numbers wrap, the first":     {waiting, 1<<32 - 2, 2, 1<<32 - 2, true},
		"numbers wrap, the last":      {waiting, 1<<32 - 2, 2, 2, true},
		"numbers wrap, before":        {waiting, 1<<32 - 2, 2, 1<<32 - 3, false},
		"numbers wrap, never sent":    {waiting, 1<<32 - 2, 2, 3, false},
		"numbers wrap, of long since": {waiting, 1, 3, 1<<32 - 1, false},
	} {
		c.path.first, c.path.last = c.first, c.last
		if got := c.path.awaits(c.number); got != c.want {
			t.Errorf("%s: awaits %d: %v, want %v", name, c.number, got, c.want)
		}
	}
}

// The path in use is probed every Probe, and all are while that is not up; the others otherwise
// every StandbyInterval; one that waits to be restored at least once in a settling time.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		vid            transport.VID
		current, state PathState
		timeout, want  time.Duration
	}{
		{10, PathUp, PathUp, 0, 100 * time.Millisecond}, {20, PathUp, PathUp, 0, time.Second},
		{20, PathUp, PathSuspect, 0, time.Second}, {20, PathUp, PathDown, 0, time.Second},
		{20, PathSuspect, PathUp, 0, 100 * time.Millisecond}, {20, PathDown, PathDown, 0, 100 * time.Millisecond},
		{20, PathUp, PathWaitToRestore, 0, 100 * time.Millisecond}, {20, PathDown, PathWaitToRestore, 0, 100 * time.Millisecond},
		{20, PathUp, PathWaitToRestore, 10 * time.Millisecond, 30 * time.Millisecond},
		{20, PathUp, PathUp, 10 * time.Millisecond, time.Second},
	} {
		f, p := pairOf(t, true)
		if c.timeout > 0 {
			f.cfg.Timeout = c.timeout
		}
		path := p.path(c.vid)
		path.state = c.state
		p.current.state = c.current
		if got := f.pause(path); got != c.want {
			t.Errorf("VID %d %v, VID 10 %v, timeout %v: %v, want %v", c.vid, c.state, c.current, f.cfg.Timeout, got, c.want)
		}
	}
}

// A peer's probe says the state of each path: down of those that it does not list, and of states
// that nobody knows. A path is reported as waiting to be restored since the first such report in a
// row.
func TestAdopt_Reports(t *testing.T) {
	f, p := pairOf(t, true)
	at := func(n int) monotime.Time { return f.now.Add(time.Duration(n) * time.Second) }
	path := p.path(20)
	for n, c := range []struct {
		entries []byte
		want    PathState
		since   int
	}{
		{[]byte{0, 10, 0, 20}, PathUp, 0},
		{[]byte{0, 10, 0x10, 20, 0, 30}, PathSuspect, 1},
		{[]byte{0x20, 20, 0, 10}, PathWaitToRestore, 2},
		{[]byte{0x20, 20}, PathWaitToRestore, 2},
		{[]byte{0, 10, 0x20, 20}, PathWaitToRestore, 2},
		{[]byte{0, 10}, PathDown, 2},
		{[]byte{0x20, 20}, PathWaitToRestore, 6},
		{[]byte{0x30, 20}, PathDown, 6},
		{[]byte{0x40, 20}, PathDown, 8},
		{[]byte{0xf0, 20}, PathDown, 9},
		{[]byte{0, 20, 0x30, 99}, PathUp, 10},
	} {
		p.adopt(at(n), &advertisement{entries: c.entries})
		if path.reported != c.want || path.reportedSince != at(c.since) {
			t.Errorf("report %d, %x: %v since %v, want %v since %v",
				n, c.entries, path.reported, path.reportedSince.Sub(at(0)), c.want, at(c.since).Sub(at(0)))
		}
	}
}

// A probe that is missed by one path, and as many as are too many by all others, takes all down; if
// one of the others may still answer, none.
func TestSilent(t *testing.T) {
	type seen struct {
		state  PathState
		misses int
	}
	for _, c := range []struct {
		paths [3]seen
		want  bool
	}{
		{[3]seen{{PathSuspect, 3}, {PathSuspect, 3}, {PathSuspect, 3}}, true},
		{[3]seen{{PathSuspect, 3}, {PathSuspect, 2}, {PathSuspect, 3}}, false},
		{[3]seen{{PathSuspect, 4}, {PathDown, 0}, {PathDown, 0}}, true},
		{[3]seen{{PathSuspect, 2}, {PathDown, 0}, {PathDown, 0}}, false},
		{[3]seen{{PathSuspect, 3}, {PathUp, 0}, {PathDown, 0}}, false},
		{[3]seen{{PathWaitToRestore, 3}, {PathWaitToRestore, 5}, {PathDown, 0}}, true},
	} {
		f, p := pairOf(t, true)
		for i, s := range c.paths {
			p.paths[i].state, p.paths[i].misses = s.state, s.misses
		}
		if got := f.silent(p); got != c.want {
			t.Errorf("%v: silent %v, want %v", c.paths, got, c.want)
		}
	}
}

// A wait that ends late becomes longer by the time for which this end stood still, up to a Timeout
// and once; one that ends in time, or late again, is a probe that was missed.
func TestTimeout_Excuses(t *testing.T) {
	const timeout = 50 * time.Millisecond
	for _, c := range []struct {
		late    time.Duration
		excused bool
		longer  time.Duration // -1: missed
	}{
		{0, false, -1}, {1, false, 1}, {timeout - 1, false, timeout - 1}, {timeout, false, timeout}, {time.Hour, false, timeout},
		{0, true, -1}, {1, true, -1}, {time.Hour, true, -1},
	} {
		f, p := pairOf(t, true)
		path := p.path(20)
		path.waiting, path.excused = true, c.excused
		f.set(&path.timer, f.now.Add(-c.late))
		f.timeout(path)
		missed, wait := path.misses == 1, path.timer.due.Sub(f.now)
		if missed != (c.longer < 0) || !missed && (wait != c.longer || !path.excused || !path.waiting) {
			t.Errorf("late by %v, excused %v: missed %v, waits for %v, excused %v; want %v longer",
				c.late, c.excused, missed, wait, path.excused, c.longer)
		}
		if missed && (path.excused || path.state != PathSuspect || len(f.steps) != 3) {
			t.Errorf("late by %v, excused %v: missed, %v, excused %v, %d probes", c.late, c.excused, path.state, path.excused, len(f.steps))
		}
	}
}

// If something was due before a call, this end has stood still: no pair is moved until as much time
// has passed again, up to a Timeout.
func TestBegin_HoldsOff(t *testing.T) {
	const timeout = 50 * time.Millisecond
	for _, c := range []struct{ late, want time.Duration }{
		{-1, -1}, {0, -1}, {1, 1}, {timeout - 1, timeout - 1}, {timeout, timeout}, {time.Hour, timeout},
	} {
		f, p := pairOf(t, true)
		for _, path := range p.paths {
			f.set(&path.timer, f.now.Add(time.Hour))
		}
		f.set(&p.path(20).timer, f.now.Add(-c.late))
		f.begin(f.now, nil)
		var want monotime.Time
		if c.want >= 0 {
			want = f.now.Add(c.want)
		}
		if f.holdOff != want {
			t.Errorf("late by %v: no pair is moved until %v, want %v", c.late, f.holdOff, want)
		}
	}
}

// A pair whose link went down is moved at once, even by an end that has just stood still; one whose
// path does not answer, after the hold-off.
func TestDecide_LinkDownIsNotPutOff(t *testing.T) {
	for _, linkDown := range []bool{true, false} {
		f, p := pairOf(t, true)
		f.holdOff = f.now.Add(time.Millisecond)
		p.current.state, p.current.linkDown = PathDown, linkDown
		f.decide(p, MoveMissed)
		if moved := p.current.vid != 10; moved != linkDown || (p.timer.at > 0) == linkDown {
			t.Errorf("link down %v: moved %v, waits %v", linkDown, moved, p.timer.at > 0)
		}
		if !linkDown {
			if p.timer.due != f.holdOff {
				t.Errorf("waits until %v, want %v", p.timer.due, f.holdOff)
			}
			p.current.state = PathUp
			f.decide(p, MoveHeld)
			if p.timer.at > 0 {
				t.Error("its own path answers again, and it waits for another one still")
			}
		}
	}
}

// A peer that answers by no path any more is told so by all, whichever end decides; the pair stays.
func TestMiss_OfASilentPeerIsNews(t *testing.T) {
	for _, decides := range []bool{true, false} {
		f, p := pairOf(t, decides)
		for _, path := range p.paths {
			path.state, path.misses = PathSuspect, f.cfg.Misses
		}
		p.path(20).misses--
		f.miss(p.path(20))
		probes := make(map[transport.VID]int)
		for _, s := range f.steps {
			probes[s.VID]++
		}
		if len(f.steps) != 3 || probes[10] != 1 || probes[20] != 1 || probes[30] != 1 || p.current.vid != 10 {
			t.Errorf("decides %v: VID %d, probes by VID %v, want VID 10 and one by each", decides, p.current.vid, probes)
		}
		for _, path := range p.paths {
			if path.state != PathDown {
				t.Errorf("decides %v: VID %d is %v", decides, path.vid, path.state)
			}
		}
	}
}

// A probe of a node that is no peer, or whose body is not failover's, changes nothing.
func TestHeard_IsIgnored(t *testing.T) {
	f, p := pairOf(t, false)
	whole := []byte{adVersion, 1, 0, 20, 0, 0, 0, 9, 0, 20}
	for _, c := range []struct {
		from transport.MAC
		body []byte
	}{{transport.MAC{8}, whole}, {p.mac, whole[:len(whole)-1]}, {p.mac, nil}, {p.mac, append([]byte{adVersion + 1}, whole[1:]...)}} {
		before := []FailoverStep{{VID: 7}}
		got := f.Heard(f.now, c.from, 1, c.body, before)
		if len(got) != 1 || p.heard || p.current != p.path(10) || p.path(10).reported == PathDown {
			t.Errorf("%v, %x: steps %v, heard %v, VID %d", c.from, c.body, got, p.heard, p.current.vid)
		}
	}
	if f.Heard(f.now, p.mac, 1, whole, nil); !p.heard {
		t.Errorf("%x: it was not heard", whole)
	}
}
