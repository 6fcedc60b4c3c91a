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
	p.note(time.Second)
	if p.limit() == 0 {
		t.Error("one long pause ended the spinning")
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
	if probes != 10 {
		t.Errorf("waits are long, and %d of 640 spin, want one in 64", probes)
	}
	for range 20 {
		p.note(10 * time.Microsecond)
	}
	if p.limit() != p.max {
		t.Error("waits are short again, and it does not spin")
	}
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
// longer than those do, by a fourth of its own time at least and by 200 us at most.
func TestSpinPolicy_WhatMakesUpForIt(t *testing.T) {
	const us = time.Microsecond
	for _, k := range []struct {
		name  string
		note  func(p *spinPolicy)
		makes time.Duration
	}{
		{"spins", func(p *spinPolicy) { p.noteKept(30 * us) }, 30 * us},
		{"sleeps longer", func(p *spinPolicy) { p.noteSleep(0, 90*us) }, 80 * us},
		{"sleeps hardly longer", func(p *spinPolicy) { p.noteSleep(0, 12*us) }, 3 * us},
		{"sleeps no longer", func(p *spinPolicy) { p.noteSleep(0, 8*us) }, 2 * us},
		{"sleeps for a second", func(p *spinPolicy) { p.noteSleep(0, time.Second) }, 200 * us},
	} {
		var p spinPolicy
		p.usual.Store(int64(10 * us))
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

// An average has an eighth of what is new, and a wait no more than four times what a spin may take.
func TestSpinPolicy_Averages(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	for _, want := range []time.Duration{50_000, 93_750} {
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
