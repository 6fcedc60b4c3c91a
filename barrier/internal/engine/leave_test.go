package engine

import "testing"

// All who have left are gone to a member that enters then, not the first of them alone.
func TestArrive_AfterSeveralHaveLeft(t *testing.T) {
	a := newAlone(t, "tree:2", 1, 5)
	for _, rank := range []int{4, 2} {
		a.hears(rank, a.from(rank, Bye, 0, 0))
	}
	a.want(a.arrives(0), "")
	a.want(a.passes(0), "0 report (left: [2 4])?, 3 report (left: [2 4])?")
}

// Byes that are not answered take the networks in turn.
func TestLeave_TakesTheNetworksInTurn(t *testing.T) {
	a := newAlone(t, "star", 1, 3)
	a.cfg.NICs = 2
	seen := map[int]bool{}
	for range 2 {
		for _, s := range a.Leave(nil) {
			seen[s.NIC] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("it uses networks %v", seen)
	}
}

// A member that answers by another path than its own is spared, in the agreement, too.
func TestExcuse_InTheAgreement(t *testing.T) {
	for _, answers := range []bool{false, true} {
		a := newAlone(t, "star", 0, 3)
		a.Accuse(a.now, 1, Left)
		a.passes(DefaultPeerTimeout * 3 / 4)
		if answers {
			a.Excuse(2)
		}
		a.passes(DefaultPeerTimeout * 3 / 4)
		if a.agree.Has(2) == answers {
			t.Errorf("it answers by another path: %t; gone are %v", answers, a.agree.Gone())
		}
	}
}

// What a member has completed before it left is not what another one enters then, though all its
// messages have come: no member enters after one has completed.
func TestArrive_WhatALeaverHasCompleted(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 3)
	a.notify(0, 1, 1)
	bye := a.from(0, Bye, 0, 0)
	bye.Done = []Done{{0, 1}, {1, 0}}
	a.hears(0, bye)
	a.want(a.arrives(0), "")
	a.hears(2, a.reports(2, Left, 0))
	a.is(Failed, 1)
	a.failure(Left, 0)
}

// A barrier that goes on after the agreement, as one that is gone has completed it, ends when
// another one says goodbye that has not.
func TestBye_AfterTheAgreement(t *testing.T) {
	a := newAlone(t, "shuffle", 0, 3)
	a.arrives(0)
	a.arrives(1)
	bye := a.from(2, Bye, 0, 0)
	bye.Done = []Done{{0, 1}, {1, 0}}
	a.hears(2, bye)
	a.passes(0)
	a.hears(1, a.reports(1, Left, 2))
	if f := a.Failure(1); f == nil || a.Agreed() != f {
		t.Fatalf("number 1 has failed: %v; agreed is %v", f, a.Agreed())
	}
	a.is(Waiting, 1) // it lacks what the other one has sent there
	bye = a.from(1, Bye, 0, 0)
	bye.Done = []Done{{0, 0}, {1, 0}}
	a.hears(1, bye)
	a.is(Failed, 1)
	a.failure(Left, 2)
}

// The last member that an agreement waits for ends it by its goodbye, in the same call: a barrier
// that it has completed fails by the one that is gone.
func TestBye_EndsTheAgreement(t *testing.T) {
	a := newAlone(t, "concurrent", 0, 3)
	a.arrives(0)
	a.Accuse(a.now, 1, Silent)
	bye := a.from(2, Bye, 0, 0)
	bye.Done = []Done{{0, 1}}
	a.hears(2, bye)
	a.is(Failed, 1)
	a.failure(Silent, 1, 2)
}

// Who is gone by the agreement takes part no more, for the reason that is agreed, and neither does
// who has said goodbye. All others do.
func TestDeparted(t *testing.T) {
	a := newAlone(t, "star", 0, 4)
	departed := func(when string, want map[int]Reason) {
		t.Helper()
		for rank := range 4 {
			why, ok := a.Departed(rank)
			wantWhy, wantOK := want[rank]
			if ok != wantOK || ok && why != wantWhy {
				t.Errorf("%s: rank %d: %v, %v; want %v, %v", when, rank, why, ok, wantWhy, wantOK)
			}
		}
	}
	departed("at first", nil)
	a.Accuse(a.now, 1, Restarted)
	a.passes(0)
	a.hears(2, a.reports(2, Restarted, 1))
	a.hears(3, a.reports(3, Restarted, 1))
	if a.Agreed() == nil {
		t.Fatal("nothing is agreed")
	}
	departed("after the agreement", map[int]Reason{1: Restarted})
	a.hears(2, a.from(2, Bye, 0, 0))
	departed("after a goodbye, too", map[int]Reason{1: Restarted, 2: Left})
}
