package mcd

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
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
	for range 10 * retryEvery {
		if p.limit() != 0 {
			probes++
		}
	}
	if probes != 10 {
		t.Errorf("waits are long, and %d of %d spin, want one in %d", probes, 10*retryEvery, retryEvery)
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
	p.share.Store(wholeShare)
	for range 40 {
		p.noteShare(10*time.Microsecond, 320*time.Microsecond)
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
	for range 2 {
		if p.limit() != p.max {
			t.Fatal("a single loss ended the spinning")
		}
		p.noteAway(4 * time.Millisecond)
	}
	const slept = 22 * time.Microsecond // 20 more than a wait that spins
	sleeps := 0
	for ; p.limit() == 0 && sleeps < 1000; sleeps++ {
		p.noteSleep(0, slept)
	}
	if want := 400; sleeps < want*98/100 || sleeps > want*102/100 {
		t.Errorf("8 ms were lost, and %d waits slept that cost 20 us more, want %d", sleeps, want)
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
		p.noteAway(computing)
	}
	for range 100 {
		p.noteKept(3 * time.Millisecond)
	}
	for range 1000 {
		p.noteAway(2 * time.Millisecond)
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
	if want := int(maxLost / maxWakeCost); sleeps != want {
		t.Errorf("%d long sleeps make up for a long pause, want %d", sleeps, want)
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

func TestSpinPolicyNoticesACrowd(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	long := clock.Now().Add(-time.Second) // a rest that began then was long
	for range crowded / crowdGrows {
		if p.isCrowded() {
			t.Fatal("too soon")
		}
		p.rest(long, 0)
	}
	if !p.isCrowded() {
		t.Fatal("others want the core, and it did not notice")
	}
	for range crowdMax {
		p.rest(long, 0) // no surer than sure
	}
	for range crowdMax - crowded {
		p.quiet()
	}
	if !p.isCrowded() {
		t.Error("each rest without others counts for one: it is sure too soon that they are gone")
	}
	for p.quiet(); p.crowd.Load() > 0; p.quiet() {
		if p.isCrowded() {
			t.Fatal("the others are gone, and it did not notice")
		}
	}
	for range crowded / crowdGrows {
		p.rest(long, 0)
	}
	if !p.isCrowded() {
		t.Error("the others are back, and it noticed later than the first time")
	}
}

// quiet is a rest that took no time at all.
func (p *spinPolicy) quiet() { p.rest(clock.Now().Add(time.Minute), 0) }
