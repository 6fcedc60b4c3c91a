package mcd

import (
	"testing"
	"time"
)

func TestSpinPolicySpinsOnlyWhileWaitsAreShort(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	if p.limit() != p.max {
		t.Error("a new endpoint should spin")
	}
	for range 5 {
		p.note(time.Second)
	}
	if p.limit() == 0 {
		t.Error("five long pauses ended the spinning")
	}
	for range 20 {
		p.note(time.Millisecond)
	}
	probes := 0
	for range 640 {
		if p.limit() != 0 {
			probes++
		}
	}
	if probes < 4*14 || probes > 4*19 {
		t.Errorf("waits are long, and %d of 640 spin, want the first few and four after each 64", probes)
	}
	if p.note(10 * time.Microsecond); p.limit() != p.max {
		t.Error("a wait was short again, and it does not spin")
	}
}

// A program of whose waits few are short spins in about as many more, and in those that try.
func TestSpinPolicy_FewShortWaits(t *testing.T) {
	for _, every := range []int{16, 64, 128} {
		p := spinPolicy{max: 100 * time.Microsecond}
		const waits = 12800
		spun := 0
		for i := range waits {
			took, limit := 200*time.Microsecond, p.limit()
			if i%every == 0 {
				took = 4 * time.Microsecond
			}
			if limit > 0 {
				spun++
			}
			if took < limit {
				p.note(took)
			} else {
				p.noteSleep(limit, took-limit)
			}
		}
		if most := 2*waits/every + waits*triesInARow/(longestPause*3/4+triesInARow); spun > most {
			t.Errorf("one wait in %d is short, and %d of %d spin, want %d at most", every, spun, waits, most)
		}
	}
}

// After as many short waits in a row as try, the next pause is of one wait; after fewer, or with a
// long one among them, it is as long as the last.
func TestSpinPolicy_WhenPausesBeginAnew(t *testing.T) {
	const us = time.Microsecond
	short, long := 99*us, 100*us
	for _, k := range []struct {
		waits []time.Duration
		anew  bool
	}{
		{[]time.Duration{short, short, short, short}, true},
		{[]time.Duration{short, short, short}, false},
		{[]time.Duration{short, short, short, long, short, short, short}, false},
		{[]time.Duration{short, long, short, short, short, short}, true},
	} {
		p := spinPolicy{max: 100 * us}
		p.average.Store(int64(200 * us))
		for range 1000 { // the pause is the longest by then
			p.limit()
		}
		for _, cost := range k.waits {
			p.note(cost)
		}
		if p.limit() != p.max {
			t.Errorf("after %v it does not spin", k.waits)
		}
		p.average.Store(int64(200 * us))
		for p.limit() == 0 { // the rest of a pause
		}
		for p.limit() != 0 { // those that try
		}
		sleeps := 1
		for p.limit() == 0 {
			sleeps++
		}
		if anew := sleeps <= 2; anew != k.anew {
			t.Errorf("after %v a pause is of %d waits", k.waits, sleeps)
		}
	}
}

// Two peers who exchange messages and sleep have waits longer than any spinning, as each waits for
// both to be woken. They spin again soon, however long each has slept before.
func TestSpinPolicy_PeersWhoSleepLearnToSpin(t *testing.T) {
	const trip, atOnce = 4 * time.Microsecond, 40
	for _, wakeUp := range []time.Duration{20 * time.Microsecond, 90 * time.Microsecond, time.Millisecond} {
		for head := range 2 * longestPause { // waits that one of them has slept alone
			peers := [2]spinPolicy{{max: 100 * time.Microsecond}, {max: 100 * time.Microsecond}}
			for i := range peers {
				peers[i].average.Store(int64(150 * time.Microsecond))
			}
			for range head {
				peers[0].limit()
			}
			waits := 0
			for ; waits < 20000 && peers[0].average.Load()+peers[1].average.Load() > int64(4*trip); waits++ {
				exchange(&peers[0], &peers[1], trip, wakeUp)
			}
			if waits == 20000 || head == 0 && waits > atOnce {
				t.Errorf("wake-ups take %v, one of two has slept %d waits before, and they exchange %d messages "+
					"before both spin", wakeUp, head, waits)
			}
		}
	}
}

// exchange is a wait of each of two peers for the other one's message.
func exchange(a, b *spinPolicy, trip, wakeUp time.Duration) {
	spunA, spunB := a.limit(), b.limit()
	wait := func(p *spinPolicy, spun, other time.Duration) {
		took := trip
		if other == 0 {
			took += wakeUp
		}
		if took <= spun {
			p.note(took)
			return
		}
		p.noteSleep(spun, took+wakeUp-spun)
	}
	wait(a, spunA, spunB)
	wait(b, spunB, spunA)
}

func TestSpinPolicyOff(t *testing.T) {
	p := spinPolicy{max: -1}
	for range 20 {
		p.note(time.Microsecond)
	}
	if p.limit() != 0 {
		t.Error("spins though it must not")
	}
}

// The time in which others have the core does not count: among many processes, waits of
// milliseconds may cost microseconds.
func TestSpinPolicyCountsItsOwnTime(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	for range 40 {
		p.noteShare(10*time.Microsecond, 320*time.Microsecond)
		for range 5 { // whose message is there already
			p.noteShare(time.Microsecond/5, time.Microsecond/5)
		}
	}
	for range 40 {
		p.noteSleep(0, time.Millisecond)
	}
	if p.limit() != p.max {
		t.Errorf("waits of 1 ms cost 1/32 of that, and it does not spin (average %v)", time.Duration(p.average.Load()))
	}
	for range 40 {
		p.noteShare(320*time.Microsecond, 320*time.Microsecond)
	}
	for range 40 {
		p.noteSleep(0, time.Millisecond)
	}
	if p.average.Load() < int64(p.max) {
		t.Error("alone, a wait of 1 ms costs all of it, and it spins")
	}
}

// Where others compute, spinning is given up until sleeping has cost what was lost, and no longer.
func TestSpinPolicy_AvoidsWhereOthersCompute(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	for range 50 {
		p.noteKept(2 * time.Microsecond)
	}
	for range 6 {
		if p.limit() != p.max {
			t.Fatal("five losses ended the spinning")
		}
		p.noteAway(4 * time.Millisecond)
	}
	const slept = 22 * time.Microsecond // 20 more than a wait that spins
	sleeps := 0
	for ; p.limit() == 0 && sleeps < 3000; sleeps++ {
		p.noteSleep(0, slept)
	}
	if want := 1200; sleeps < want*98/100 || sleeps > want*102/100 {
		t.Errorf("24 ms were lost, and %d waits slept that cost 20 us more, want %d", sleeps, want)
	}
	if p.limit() != p.max {
		t.Error("what was lost is made up for, and it does not spin")
	}
	if p.average.Load() != 0 {
		t.Errorf("waits that had to sleep count as long ones: %v", time.Duration(p.average.Load()))
	}
}

// What is lost now and then is forgotten by as much spinning.
func TestSpinPolicy_ForgetsRareLosses(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	for range 20 {
		p.noteAway(4 * time.Millisecond)
		for range 50 {
			p.noteKept(100 * time.Microsecond)
		}
		if p.limit() != p.max {
			t.Fatal("one millisecond of two is lost, and it does not spin")
		}
	}
}

// Neither the turns of many spinners nor a wait that is long by itself are losses; a pause of an
// hour is one like others.
func TestSpinPolicy_WhatIsLost(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	for range 1000 {
		p.noteAway(time.Millisecond)
	}
	for range 100 {
		p.noteKept(4 * time.Millisecond)
	}
	for range 1000 {
		p.noteAway(3 * time.Millisecond)
	}
	if p.limit() != p.max {
		t.Error("avoids spinning, and has lost nothing")
	}
	p = spinPolicy{max: 100 * time.Microsecond}
	p.noteAway(time.Hour)
	if p.limit() != 0 {
		t.Error("spins after it has lost an hour")
	}
	sleeps := 0
	for ; p.limit() == 0 && sleeps < 1000; sleeps++ {
		p.noteSleep(0, time.Second)
	}
	if sleeps != 150 { // 30 ms are made up for by 200 us each
		t.Errorf("%d long sleeps make up for a long pause, want 150", sleeps)
	}
	for range 9 {
		p.noteAway(2*time.Millisecond + time.Microsecond)
	}
	if p.limit() != p.max {
		t.Error("18 ms are lost, and it does not spin")
	}
	for range 100 { // turns of many spinners
		if p.noteAway(2 * time.Millisecond); p.limit() != p.max {
			t.Fatal("2 ms are taken for somebody's work")
		}
	}
	if p.noteAway(2*time.Millisecond + time.Microsecond); p.limit() != 0 {
		t.Error("20 ms are lost, and it spins")
	}
}

// What makes up for a loss: a wait that spins by what it took; one that sleeps by what it took
// longer than those do, by a fourth of its own time at least, and at most by 200 us or, among many
// where each wait takes long, by as much again as those that spin.
func TestSpinPolicy_WhatMakesUpForIt(t *testing.T) {
	const us = time.Microsecond
	for _, k := range []struct {
		name         string
		note         func(p *spinPolicy)
		usual, makes time.Duration
	}{
		{"spins", func(p *spinPolicy) { p.noteKept(30 * us) }, 10 * us, 30 * us},
		{"sleeps longer", func(p *spinPolicy) { p.noteSleep(0, 90*us) }, 10 * us, 80 * us},
		{"sleeps hardly longer", func(p *spinPolicy) { p.noteSleep(0, 12*us) }, 10 * us, 3 * us},
		{"sleeps no longer", func(p *spinPolicy) { p.noteSleep(0, 8*us) }, 10 * us, 2 * us},
		{"sleeps for a second", func(p *spinPolicy) { p.noteSleep(0, time.Second) }, 10 * us, 200 * us},
		{"sleeps among many", func(p *spinPolicy) { p.noteSleep(0, 1100*us) }, 600 * us, 500 * us},
		{"sleeps long among many", func(p *spinPolicy) { p.noteSleep(0, 3000*us) }, 600 * us, 600 * us},
	} {
		var p spinPolicy
		p.usual.Store(int64(k.usual))
		p.lost.Store(int64(time.Millisecond))
		p.avoids.Store(true)
		k.note(&p)
		if makes := time.Millisecond - time.Duration(p.lost.Load()); makes != k.makes {
			t.Errorf("a wait that %s makes up for %v, want %v", k.name, makes, k.makes)
		}
		for left := range 2 {
			p.lost.Store(int64(k.makes) + int64(left))
			p.avoids.Store(true)
			if k.note(&p); p.avoids.Load() != (left > 0) {
				t.Errorf("a wait that %s leaves %d ns to make up for, and avoids spinning: %v", k.name, left, p.avoids.Load())
			}
		}
	}
}

// An average has an eighth of what is new, and a wait no more than twice what a spin may take.
func TestSpinPolicy_Averages(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	for _, want := range []time.Duration{25_000, 46_875} {
		p.note(time.Hour)
		if a := time.Duration(p.average.Load()); a != want {
			t.Errorf("average %v, want %v", a, want)
		}
	}
	p.average.Store(0)
	p.own.Store(1024)
	p.whole.Store(4096)
	p.noteSleep(8*time.Microsecond, 32*time.Microsecond) // which cost 8 + 32/4
	if a := time.Duration(p.average.Load()); a != 2*time.Microsecond {
		t.Errorf("average %v, want 2 us", a)
	}
	if p.noteShare(4096, 4096); p.share() != 11./32 {
		t.Errorf("share %v, want 11/32", p.share())
	}
	p = spinPolicy{}
	if p.share() != 1 {
		t.Errorf("share %v where nobody has spun, want 1", p.share())
	}
}

// A goroutine that sleeps stays awake for a stream where the core is its own, or is wanted by
// programs that compute; not among spinners.
func TestSpinPolicy_StaysAwake(t *testing.T) {
	for _, k := range []struct {
		max             time.Duration
		crowded, avoids bool
		want            bool
	}{
		{max: time.Microsecond, want: true},
		{max: time.Microsecond, crowded: true},
		{max: time.Microsecond, crowded: true, avoids: true, want: true},
		{max: -1}, {max: 0},
	} {
		p := spinPolicy{max: k.max}
		if k.crowded {
			p.crowd.Store(crowdMax)
		}
		p.avoids.Store(k.avoids)
		if got := p.staysAwake(); got != k.want {
			t.Errorf("%+v: %v", k, got)
		}
	}
}
