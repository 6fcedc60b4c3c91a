package engine

import (
	"slices"
	"testing"
)

// A roll call finds who has entered, who has not, who has no such group, and who does not answer.
func TestRollCall(t *testing.T) {
	a := newAlone(t, "star", 0, 5)
	a.arrives(0)
	a.want(sends(a.CallRoll(0, false, nil)), "all roll call gen=1")
	present := a.from(1, Present, 1, 0)
	present.Entered = true
	a.want(a.hears(1, present), "")
	a.want(a.hears(2, a.from(2, Present, 1, 0)), "")
	a.want(a.hears(3, Message{Kind: Absent, Identity: identity, Generation: 1}), "")
	if want := []Presence{Entered, Entered, NotEntered, NoGroup, NoAnswer}; !slices.Equal(a.Roll(), want) {
		t.Errorf("the roll call finds %v, want %v", a.Roll(), want)
	}
	a.is(Waiting, 1)
}

// Answers to an earlier roll call, of another number, are not taken for this one's.
func TestRollCall_OfAnotherNumber(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.arrives(1)
	a.CallRoll(0, false, nil)
	a.CallRoll(1, false, nil)
	late := a.from(1, Present, 1, 0) // of number 0
	late.Entered = true
	a.hears(1, late)
	if a.Roll()[1] != NoAnswer {
		t.Errorf("the roll call of number 1 finds %v: that was said of number 0", a.Roll())
	}
}

// Each answers for itself, in whatever state.
func TestRollCall_Answer(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	for _, entered := range []bool{false, true} {
		call := a.from(1, Roll, 1, 0)
		out := a.Handle(a.now, 1, &call, Elsewhere{}, nil)
		if len(out) != 1 || out[0].To != 1 || out[0].Message.Kind != Present || out[0].Message.Entered != entered {
			t.Errorf("answers %q, want present, entered %t", sends(out), entered)
		}
		if !entered {
			a.arrives(0)
		}
	}
}

// A node that has not made its group yet is there, and that is all: it runs no other algorithm.
func TestAbsent(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	for range 100 {
		a.passes(DefaultLimit / 20)
		a.hears(1, Message{Kind: Absent, Identity: identity, Generation: 1})
	}
	a.is(Waiting, 1)
	a.want(a.tells(1, 1, 0), "1 tell 1 gen=1")
	a.is(Idle, 1)
}

// A member that was heard in the group, and says again and again that it has no such group, has left it.
func TestAbsent_OfOneThatWasHere(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.hears(1, a.from(1, Later, 1, 0))
	absent := Message{Kind: Absent, Identity: identity, Generation: 1}
	for range maxAbsences - 1 {
		a.want(a.hears(1, absent), "")
	}
	a.hears(1, a.from(1, Later, 1, 0)) // it was long on its way
	for range maxAbsences - 1 {
		a.want(a.hears(1, absent), "")
	}
	a.is(Waiting, 1)
	a.hears(1, absent)
	a.is(Failed, 1)
	if f := a.Failure(0); f.Reason != Left || !slices.Equal(f.Ranks, []int{1}) {
		t.Errorf("failed as %v", f)
	}
	b := newAlone(t, "star", 0, 3)
	b.arrives(0)
	for range 10 * maxAbsences {
		b.want(b.hears(2, absent), "") // it was never heard: it has not made the group yet
	}
	b.is(Waiting, 1)
}
