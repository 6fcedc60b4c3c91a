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
