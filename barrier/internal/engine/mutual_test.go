package engine

import (
	"testing"
	"time"
)

// elsewhere is a barrier in another number, in which this node is not.
func elsewhere(number uint8, generation uint32) Elsewhere {
	return Elsewhere{number, identity, generation}
}

// waitsElsewhere is a member's answer: it waits for us in another barrier.
func (a *alone) waitsElsewhere(rank int, label uint8, where Elsewhere) Message {
	m := a.from(rank, Later, 1, label)
	m.Elsewhere = where
	return m
}

// Two that wait for each other in different numbers would do so for ever: after the limit both barriers fail, and
// name the other member.
func TestMutualWait(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.hears(1, a.waitsElsewhere(1, 0, elsewhere(7, 1)))
	a.passes(DefaultLimit - time.Millisecond)
	a.want(a.hears(1, a.waitsElsewhere(1, 0, elsewhere(7, 1))), "")
	a.passes(time.Millisecond)
	a.want(a.hears(1, a.waitsElsewhere(1, 0, elsewhere(7, 1))),
		"all failed (another barrier: [1]) gen=1, 1 failed (another barrier: [0]) number=7 gen=1")
	a.failure(Elsewheres, 1)
	if f := a.Failure(0); f.Elsewhere != elsewhere(7, 1) {
		t.Errorf("it waits in %+v", f.Elsewhere)
	}
}

// The message that ends the other barrier may be lost: who waits there asks, and is told.
func TestMutualWait_TheOtherBarrierFailsToo(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.hears(1, a.waitsElsewhere(1, 0, elsewhere(7, 1)))
	a.passes(DefaultLimit)
	a.hears(1, a.waitsElsewhere(1, 0, elsewhere(7, 1)))
	ask := a.from(1, Ask, 1, 1)
	ask.Number = 7
	a.want(a.hears(1, ask), "1 failed (another barrier: [0]) number=7 gen=1")
}

// A member that waits in one generation after the other of another number is on its way.
func TestMutualWait_NotWhileTheOtherGoesOn(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	for generation := range uint32(5) {
		a.passes(DefaultLimit / 2)
		a.hears(1, a.waitsElsewhere(1, 0, elsewhere(7, generation+1)))
	}
	a.is(Waiting, 1)
}

// One that has entered this barrier, and waits for us in another one too, is not the reason that this one lasts.
func TestMutualWait_NotWithWhoHasEntered(t *testing.T) {
	a := newAlone(t, "tree:2", 2, 4) // awaits 3, and 0's release
	a.arrives(0)
	ask := a.from(0, Ask, 1, 1) // 0 lacks our message, as we lack 3's
	var out []Send
	out = a.Handle(a.now, 0, &ask, elsewhere(7, 1), out)
	answer := out[0].Message
	if answer.Kind != Later || !answer.Entered || answer.Elsewhere != (Elsewhere{}) {
		t.Errorf("answers %v: entered %t, elsewhere %+v", &answer, answer.Entered, answer.Elsewhere)
	}
}

// One came at last; another one is still elsewhere.
func TestMutualWait_WithASecondMember(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.hears(1, a.waitsElsewhere(1, 0, elsewhere(7, 1)))
	a.tells(1, 1, 0)
	a.hears(2, a.waitsElsewhere(2, 0, elsewhere(8, 1)))
	a.passes(DefaultLimit)
	a.hears(2, a.waitsElsewhere(2, 0, elsewhere(8, 1)))
	a.failure(Elsewheres, 2)
}

// The other barrier may be one of another group, in which ranks and incarnations are others: the news names who sends
// it, and is not taken for that of a member that has begun anew.
func TestMutualWait_InAnotherGroup(t *testing.T) {
	a := newAlone(t, "star", 1, 2)
	other := a.failed(0, 1, Elsewheres, 1) // as a member of rank 0 of some other group says it
	other.Incarnation = 0
	a.tells(0, 1, 1)
	a.arrives(0)
	b := newAlone(t, "star", 1, 2)
	b.hears(0, b.from(0, Roll, 1, 0))
	b.arrives(0)
	b.hears(0, other)
	b.failure(Elsewheres, 0)

	c := newAlone(t, "star", 0, 2)
	c.arrives(0)
	where := Elsewhere{7, identity + 1, 1}
	c.hears(1, c.waitsElsewhere(1, 0, where))
	c.passes(DefaultLimit)
	late := c.waitsElsewhere(1, 0, where)
	out := c.Handle(c.now, 1, &late, Elsewhere{}, nil)
	if m := out[len(out)-1].Message; m.Identity != identity+1 || m.Incarnation != 0 {
		t.Errorf("tells the other group %+v", m)
	}
}

// One who has not left the generation before is on its way: whoever waits in the next one has seen it enter.
func TestInOrBefore(t *testing.T) {
	a := newAlone(t, "concurrent", 0, 2)
	for _, c := range []struct {
		what            string
		do              func()
		first, next, on bool // generations 1, 2 and 3
	}{
		{"never entered", func() {}, false, false, false},
		{"waiting in 1", func() { a.arrives(0) }, true, true, false},
		{"left 1", func() { a.tells(1, 1, 0) }, true, false, false},
		{"waiting in 2", func() { a.arrives(0) }, true, true, true},
		{"failed in 2", func() { a.hears(1, a.failed(1, 2, Algorithms, 1)) }, true, true, false},
	} {
		c.do()
		for g, want := range []bool{c.first, c.next, c.on} {
			if a.InOrBefore(0, uint32(g)+1) != want {
				t.Errorf("%s: generation %d: want %t", c.what, g+1, want)
			}
		}
	}
}
