package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// A member that answers nothing for PeerTimeout is silent.
func TestSilence(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.passes(DefaultPeerTimeout)
	a.is(Waiting, 1)
	a.passes(DefaultPeerTimeout / 10)
	a.is(Failed, 1)
	a.failure(Silent, 1)
}

// A node that stood still does not count that time as the silence of others, whose answers it
// has not read yet.
func TestSilence_NotWhileOneStandsStillOneself(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.passes(DefaultPeerTimeout * 6 / 10) // the other one is paused, or frames are lost
	a.now = a.now.Add(DefaultPeerTimeout * 6 / 10)
	a.Advance(a.now, nil)
	a.is(Waiting, 1)
	a.hears(1, a.from(1, NotYet, 1, 0))
	a.passes(DefaultPeerTimeout / 2)
	a.is(Waiting, 1)
}

// Nacks of long ago, in a barrier that ended otherwise, do not make a member silent today.
func TestSilence_NotOfLongAgo(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.passes(50 * time.Millisecond)
	a.hears(1, a.failed(1, 1, OtherAlgorithm, 2))
	a.is(Failed, 1)
	a.passes(time.Hour)
	a.arrives(1)
	a.passes(DefaultPeerTimeout * 9 / 10)
	if s, _ := a.State(1); s != Waiting {
		t.Errorf("it is %v (%v)", s, a.Failure(1))
	}
}

// Last counts the member whose message a step waited for longest, once for each step.
func TestLast(t *testing.T) {
	a := newAlone(t, "star", 0, 4)
	for g := range uint32(3) {
		a.arrives(0)
		for _, rank := range []int{1, 3, 2} {
			a.notify(rank, g+1, 0)
		}
	}
	if got, want := a.Last(), []uint64{0, 0, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("last were %v, want %v", got, want)
	}
	a.arrives(0)
	a.notify(2, 4, 0)
	for _, rank := range []int{1, 2, 3} { // ahead of this member, which waits for 1 and 3 in the generation before
		a.notify(rank, 5, 0)
	}
	if got, want := a.Last(), []uint64{0, 0, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("behind messages of the next generation, last were %v, want %v", got, want)
	}
}

// Times says when each step was done.
func TestTimes_OfSteps(t *testing.T) {
	a := newAlone(t, "tree:2", 2, 4)
	a.arrives(0)
	a.now = a.now.Add(time.Millisecond)
	a.notify(3, 1, 0)
	if got := a.Times(0).Steps[0].Done; got != a.now {
		t.Errorf("the first step was done at %v, want %v", got, a.now)
	}
}

// Times says when each message came, and nothing of those that have not.
func TestTimes_OfArrivals(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.now = a.now.Add(time.Millisecond)
	a.notify(2, 1, 0)
	if got, want := a.Times(0).Steps[0].Arrivals, []Arrival{{1, monotime.Time{}}, {2, a.now}}; !slices.Equal(got, want) {
		t.Errorf("arrivals %v, want %v", got, want)
	}
}

// Statistics count waits, from the entry on.
func TestStats_Waits(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	for _, wait := range []time.Duration{3, 1, 2} {
		a.arrives(0)
		a.now = a.now.Add(wait)
		a.notify(1, a.machine(0).generation, 0)
	}
	var s Stats
	if a.AddStats(&s); s.Barriers != 3 || s.Wait != 6 || s.MaxWait != 3 {
		t.Errorf("%d barriers waited for %v, %v at most; want 3, 6ns and 3ns", s.Barriers, s.Wait, s.MaxWait)
	}
}

// However long steps took, a loss is told several times before its sender counts as silent.
func TestPatience_IsBounded(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	for generation := range uint32(20) {
		a.arrives(0)
		a.now = a.now.Add(DefaultPeerTimeout)
		a.notify(1, generation+1, 0)
	}
	a.arrives(0)
	a.want(a.passes(DefaultPeerTimeout/nacksPerTimeout-1), "")
	a.want(a.passes(1), "1 nack 0 gen=21")
}

// Who doubts the others asks nobody who has left.
func TestDoubt_OfLeavers(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.hears(1, a.from(1, Bye, 0, 0))
	a.Doubt(a.now)
	a.want(a.passes(0), "2 report (left: [1])?")
}

// A member that does not answer the agreement is doubtful, though no barrier waits for it.
func TestDoubtful_InTheAgreement(t *testing.T) {
	a := newAlone(t, "star", 1, 4)
	a.Accuse(a.now, 3, Left)
	for range 12 {
		a.passes(DefaultPeerTimeout / 20)
		a.hears(0, a.reports(0, Left, 3))
	}
	if got := a.Doubtful(nil); !slices.Equal(got, []int{2}) {
		t.Errorf("doubtful are %v, want 2", got)
	}
}
