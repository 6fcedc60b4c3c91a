package engine

import (
	"testing"
	"time"
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
