package control

import (
	"slices"
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

// An end that is late with each look puts the choice of a path off Misses times, and then moves. It
// does so for each choice anew, whether it moved for the one before or that turned out needless.
func TestDecide_PutsOffMissesTimes(t *testing.T) {
	for _, misses := range []int{1, 3, 4} {
		f, err := NewFailover(transport.MAC{2}, FailoverConfig{VIDs: []transport.VID{10, 20}, Misses: misses})
		if err != nil {
			t.Fatal(err)
		}
		f.now = monotime.At(time.Hour)
		p := f.newPeer(transport.MAC{4}, 10)
		look := func() {
			f.now = f.now.Add(time.Second)
			f.holdOff = f.now.Add(time.Millisecond)
			f.decide(p, MoveMissed)
		}
		leave := func(vid transport.VID) {
			t.Helper()
			times := 0
			for ; p.current.vid == vid && times < 10; times++ {
				look()
			}
			if want := misses + 1; times != want {
				t.Errorf("of %d misses: moved off VID %d at look %d, want %d", misses, vid, times, want)
			}
		}
		p.path(10).state = PathDown
		leave(10)
		p.path(10).state, p.path(20).state = PathUp, PathDown
		leave(20)
		p.path(10).state, p.path(20).state = PathDown, PathUp
		look()
		p.path(10).state = PathUp
		look() // nothing is to be done
		p.path(10).state = PathDown
		leave(10)
	}
}

// The comment of choose, row by row. The pair is on VID 10 and prefers it, or 20 where a row says
// so.
func TestChoose(t *testing.T) {
	now := monotime.At(time.Hour)
	at := func(d time.Duration) monotime.Time { return now.Add(d) }
	const settling = 150 * time.Millisecond
	type seen struct {
		state  PathState
		since  time.Duration // before now
		misses int
	}
	up, suspect, down := seen{state: PathUp}, seen{state: PathSuspect, misses: 1}, seen{state: PathDown}
	back := func(since time.Duration) seen { return seen{PathWaitToRestore, since, 0} }
	for name, c := range map[string]struct {
		paths  [3]seen
		prefer transport.VID
		want   transport.VID
		at     monotime.Time
	}{
		"not down, of three that are up":           {[3]seen{up, up, up}, 10, 10, now},
		"not down, the preferred one is up":        {[3]seen{suspect, up, up}, 20, 20, now},
		"not down, the preferred one is suspect":   {[3]seen{up, suspect, up}, 20, 10, now},
		"suspect, and others are up":               {[3]seen{suspect, up, up}, 10, 10, now},
		"not down, the preferred one has not held": {[3]seen{up, back(time.Second), up}, 20, 10, now},
		"down, one is up":                          {[3]seen{down, back(time.Second), up}, 10, 30, now},
		"down, the preferred one is up, too":       {[3]seen{down, up, up}, 20, 20, now},
		"down, the others are suspect":             {[3]seen{down, suspect, suspect}, 10, 10, now},
		"down, all are":                            {[3]seen{down, down, down}, 10, 10, now},
		"down, one answers again":                  {[3]seen{down, back(time.Second / 10), down}, 10, 20, at(settling - time.Second/10)},
		"down, both answer, the first for longer":  {[3]seen{down, back(2 * time.Second), back(time.Second)}, 10, 20, at(settling - 2*time.Second)},
		"down, both answer, the second for longer": {[3]seen{down, back(time.Second), back(2 * time.Second)}, 10, 30, at(settling - 2*time.Second)},
		"down, both answer, the preferred and it":  {[3]seen{down, back(time.Second), back(time.Second)}, 20, 20, at(settling - time.Second)},
		"it answers again itself":                  {[3]seen{back(time.Second / 10), down, back(time.Second)}, 10, 10, now},
		"down, one that answered has missed one":   {[3]seen{down, {PathWaitToRestore, time.Second, 1}, down}, 10, 10, now},
		"down, of two that answered one missed":    {[3]seen{down, {PathWaitToRestore, 2 * time.Second, 1}, back(time.Second)}, 10, 30, at(settling - time.Second)},
	} {
		f, err := NewFailover(transport.MAC{2}, FailoverConfig{VIDs: []transport.VID{10, 20, 30}})
		if err != nil {
			t.Fatal(err)
		}
		f.now = now
		p := f.newPeer(transport.MAC{4}, c.prefer)
		p.current = p.path(10)
		for i, s := range c.paths {
			p.paths[i].state, p.paths[i].since, p.paths[i].misses = s.state, now.Add(-s.since), s.misses
		}
		if best, from := f.choose(p); best.vid != c.want || from != c.at {
			t.Errorf("%s: VID %d in %v, want %d in %v", name, best.vid, from.Sub(now), c.want, c.at.Sub(now))
		}
	}
}

// An answer counts until the path is given up, or its link goes down or comes up: one to the last
// probe before that does not any more, and one to the first probe since does.
func TestAnswersOfBeforeDoNotCount(t *testing.T) {
	for name, end := range map[string]func(f *Failover, path *path){
		"given up":     func(f *Failover, path *path) { f.giveUp(path) },
		"link is back": func(f *Failover, path *path) { f.SetLink(f.now, false, nil); f.SetLink(f.now, true, nil) },
		"link of one":  func(f *Failover, path *path) { f.SetLink(f.now, false, nil, 10); f.SetLink(f.now, true, nil, 10) },
	} {
		f, err := NewFailover(transport.MAC{2}, FailoverConfig{VIDs: []transport.VID{10, 20}})
		if err != nil {
			t.Fatal(err)
		}
		now := monotime.At(time.Hour)
		if _, err := f.SetPeer(now, transport.MAC{4}, 10, nil); err != nil {
			t.Fatal(err)
		}
		p := f.peers[transport.MAC{4}]
		path := p.path(10)
		answered := func(number uint32) {
			body := []byte{adVersion, 1, 0, 10, byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number), 0, 10}
			f.Answered(now, p.mac, 10, body, nil)
		}
		f.probe(path)
		before := path.last
		if before != p.number {
			t.Fatalf("probe %d is not the last one to the peer, %d", before, p.number)
		}
		end(f, path)
		answered(before)
		if path.state != PathDown {
			t.Errorf("%s: an answer to the probe before: %v", name, path.state)
		}
		if path.last == before { // a link that comes up is probed at once
			f.probe(path)
		}
		answered(path.last)
		if path.state != PathWaitToRestore {
			t.Errorf("%s: an answer to a probe since: %v", name, path.state)
		}
	}
}

// An answer that changes the state of a path is news for the peer: all paths are probed at once.
// One that ends a suspicion is none, since the peer was told of none.
func TestAnswer_TellsWhatIsNew(t *testing.T) {
	for _, self := range []transport.MAC{{2}, {6}} { // it decides, and it follows
		for _, c := range []struct {
			before, after PathState
			tells         bool
		}{
			{PathUp, PathUp, false}, {PathSuspect, PathUp, false}, {PathDown, PathWaitToRestore, true},
			{PathWaitToRestore, PathWaitToRestore, false}, {PathWaitToRestore, PathUp, true},
		} {
			f, err := NewFailover(self, FailoverConfig{VIDs: []transport.VID{10, 20, 30}})
			if err != nil {
				t.Fatal(err)
			}
			f.now = monotime.At(time.Hour)
			p := f.newPeer(transport.MAC{4}, 10)
			path := p.path(20)
			path.state, path.since = c.before, f.now
			if c.after == PathUp {
				path.since = f.now.Add(-path.hold)
			}
			f.answer(path)
			probes := make(map[transport.VID]int)
			for _, s := range f.steps {
				probes[s.VID]++
			}
			all := probes[10] == 1 && probes[20] == 1 && probes[30] == 1 && len(f.steps) == 3
			if path.state != c.after || all != c.tells || !all && len(f.steps) > 0 {
				t.Errorf("%v: an answer while %v: %v, probes by VID %v; want %v, and one by each: %v",
					self, c.before, path.state, probes, c.after, c.tells)
			}
		}
	}
}

// A path that goes down within eight times its hold after it was restored has to hold for twice as
// long, up to 16 times WaitToRestore; one that goes down later, for WaitToRestore. Nothing else
// changes that: neither answers while it is up, nor going down again before it was up.
func TestEnter_Hold(t *testing.T) {
	const wait = 5 * time.Second
	for name, c := range map[string]struct {
		from, to PathState
		hold     time.Duration
		restored time.Duration // before now, or -1: never
		want     time.Duration
	}{
		"up, down at once":               {PathUp, PathDown, wait, 0, 2 * wait},
		"up, down just within":           {PathSuspect, PathDown, wait, 8*wait - 1, 2 * wait},
		"up, down just after":            {PathSuspect, PathDown, wait, 8 * wait, wait},
		"up, down within a longer hold":  {PathSuspect, PathDown, 4 * wait, 32*wait - 1, 8 * wait},
		"up, down after a longer hold":   {PathSuspect, PathDown, 4 * wait, 32 * wait, wait},
		"up, down at once, for the most": {PathSuspect, PathDown, 16 * wait, 0, 16 * wait},
		"down for the first time":        {PathSuspect, PathDown, wait, -1, wait},
		"up, answers":                    {PathUp, PathUp, 2 * wait, 0, 2 * wait},
		"suspect, answers":               {PathSuspect, PathUp, 4 * wait, time.Hour, 4 * wait},
		"down before it was up":          {PathWaitToRestore, PathDown, 2 * wait, 0, 2 * wait},
		"down, its link goes down, too":  {PathDown, PathDown, 2 * wait, time.Hour, 2 * wait},
		"down, answers":                  {PathDown, PathWaitToRestore, 2 * wait, 0, 2 * wait},
	} {
		f, err := NewFailover(transport.MAC{2}, FailoverConfig{VIDs: []transport.VID{10}, WaitToRestore: wait})
		if err != nil {
			t.Fatal(err)
		}
		f.now = monotime.At(24 * time.Hour)
		path := &path{state: c.from, hold: c.hold}
		if c.restored >= 0 {
			path.restored = f.now.Add(-c.restored)
		}
		f.enter(path, c.to)
		if path.hold != c.want {
			t.Errorf("%s: holds for %v next, want %v", name, path.hold, c.want)
		}
	}
}

// The peer counts as alive once it has answered by another path half a Timeout ago.
func TestPeerAlive(t *testing.T) {
	const timeout = 60 * time.Millisecond
	f, err := NewFailover(transport.MAC{2}, FailoverConfig{VIDs: []transport.VID{10}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	f.now = monotime.At(time.Hour)
	for at, want := range map[monotime.Time]bool{
		{}: false, f.now: false, f.now.Add(1 - timeout/2): false, f.now.Add(-timeout / 2): true, f.now.Add(-timeout): true,
	} {
		if got := f.peerAlive(&path{aliveOnOtherPath: at}); got != want {
			t.Errorf("an answer %v ago: alive: %v, want %v", f.now.Sub(at), got, want)
		}
	}
}

// Where all links are down, nothing is waited for.
func TestPathsOfDeadLinksLeaveNoTimer(t *testing.T) {
	f, err := NewFailover(transport.MAC{2}, FailoverConfig{VIDs: []transport.VID{10, 20}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	if _, err := f.SetPeer(now, transport.MAC{4}, 10, nil); err != nil {
		t.Fatal(err)
	}
	f.SetLink(now, false, nil)
	if at, ok := f.Deadline(); ok || at != (monotime.Time{}) {
		t.Errorf("of a peer from before something is due at %v", at)
	}
	if _, err := f.SetPeer(now, transport.MAC{6}, 10, nil); err != nil {
		t.Fatal(err)
	}
	if at, ok := f.Deadline(); ok {
		t.Errorf("of a peer that came later something is due at %v", at)
	}
}

// A report on a link that says what is known does nothing: the state of no path changes.
func TestSetLink_NothingNew(t *testing.T) {
	f, err := NewFailover(transport.MAC{2}, FailoverConfig{VIDs: []transport.VID{10, 20}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	if _, err := f.SetPeer(now, transport.MAC{4}, 10, nil); err != nil {
		t.Fatal(err)
	}
	again := func(up bool, vids ...transport.VID) {
		t.Helper()
		before := f.Revision()
		if steps := f.SetLink(now, up, nil, vids...); len(steps) > 0 || f.Revision() != before {
			t.Errorf("up %v, VIDs %v: %v", up, vids, steps)
		}
	}
	again(true)
	again(true, 10)
	again(false, 4000)
	f.SetLink(now, false, nil, 20)
	again(false, 20)
	f.SetLink(now, false, nil)
	again(false)
	again(false, 10)
}

func TestWord_OfNoState(t *testing.T) {
	for s, want := range map[State]string{Watching: "watching", Evaluating: "evaluating", Evaluating + 1: "unknown (3)", -1: "unknown (-1)"} {
		if got := s.String(); got != want {
			t.Errorf("%d is %q, want %q", int(s), got, want)
		}
	}
}

func TestMoveReason_String(t *testing.T) {
	for r, want := range map[MoveReason]string{
		0: "?", MoveMissed: "no answer", MoveLink: "link down", MoveReported: "reported by the peer",
		MoveHeld: "has held", MoveFollowed: "decided by the peer", MoveTold: "told", MoveTold + 1: "unknown (7)",
	} {
		if got := r.String(); got != want {
			t.Errorf("reason %d: %q, want %q", r, got, want)
		}
	}
}

// What a dead VID carried is spread over the others: with which one a pair begins, its addresses say.
func TestNth_OfOtherPairs(t *testing.T) {
	for last, want := range map[byte][]transport.VID{0: {20, 10, 30, 40}, 1: {20, 30, 40, 10}, 5: {20, 40, 10, 30}} {
		f, err := NewFailover(transport.MAC{}, FailoverConfig{VIDs: []transport.VID{10, 20, 30, 40}})
		if err != nil {
			t.Fatal(err)
		}
		p := f.newPeer(transport.MAC{0, 0, 0, 0, 0, last}, 20)
		var got []transport.VID
		for i := range p.paths {
			got = append(got, f.nth(p, i).vid)
		}
		if !slices.Equal(got, want) {
			t.Errorf("address ending in %d: %v, want %v", last, got, want)
		}
	}
}
