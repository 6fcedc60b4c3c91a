package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Notifies of a first generation, first ones and those that are sent again, tell the incarnations that
// their sender knows, also by hearsay; later ones tell none.
func TestIncarnations_AreTold(t *testing.T) {
	a := newAlone(t, "tree:2", 2, 4)
	told := func(what string, out []Send, want ...uint32) {
		t.Helper()
		if len(out) != 1 || out[0].Message.Kind != Notify || !slices.Equal(out[0].Message.Known, want) {
			t.Errorf("%s: %q tells %v, want %v", what, sends(out), out[0].Message.Known, want)
		}
	}
	out, _ := a.Arrive(a.now, 0, nil)
	a.want(sends(out), "")
	notify := a.from(3, Notify, 1, 0)
	notify.Known = []uint32{0, 2, 0, 4}
	out = a.Handle(a.now, 3, &notify, nil)
	told("its notify", out, 0, 2, 3, 4)
	nack := a.from(0, Nack, 1, 1)
	told("the same again", a.Handle(a.now, 0, &nack, nil), 1, 2, 3, 4)
	told("what was sent before", out, 0, 2, 3, 4)
	a.notify(0, 1, 2)
	a.is(Idle, 1)
	out, _ = a.Arrive(a.now, 0, nil)
	notify = a.from(3, Notify, 2, 0)
	told("the second generation", a.Handle(a.now, 3, &notify, out))
	nack.Generation = 2
	told("the second generation, again", a.Handle(a.now, 0, &nack, nil))
	nack.Generation = 1
	told("the first generation, in the second", a.Handle(a.now, 0, &nack, nil), 1, 2, 3, 4)
	if bye := a.Goodbye(1); bye.Echo != 2 {
		t.Errorf("its bye to 1, of which it was told, is to incarnation %d", bye.Echo)
	}
}

// A group that is larger than a notify has room for tells no incarnations.
func TestIncarnations_OfLargeGroups(t *testing.T) {
	for size, want := range map[int]int{maxKnown: maxKnown, maxKnown + 1: 0} {
		a := newAlone(t, "star", 1, size)
		out, _ := a.Arrive(a.now, 0, nil)
		if got := len(out[0].Message.Known); got != want {
			t.Errorf("%d members: %d are told, want %d", size, got, want)
		}
	}
}

// Nor does a group tell them whose notify, or bye, would be longer than a message may be.
func TestIncarnations_OfShortMessages(t *testing.T) {
	const size = 20
	for most := headLen + 2; most <= MaxLen; most++ {
		e := New(Config{
			Rank: 1, Size: size, NICs: 1, Algorithm: algorithm("star"), Identity: identity, Incarnation: 2,
			PeerTimeout: DefaultPeerTimeout, MaxMessage: most,
		})
		out, _ := e.Arrive(monotime.At(time.Second), 0, nil)
		notify, bye := out[0].Message, e.Goodbye(0)
		for _, m := range []Message{notify, bye} {
			length, want := len(m.Append(nil)), size
			if without := length - len(m.Known)*wordLen; without+size*wordLen > most {
				want = 0
			}
			if len(m.Known) != want || length > most && want > 0 {
				t.Errorf("at most %d bytes: a %v of %d tells %d incarnations, want %d", most, m.Kind, length, len(m.Known), want)
			}
		}
	}
}

// What a message tells must agree with what is known: else a member has begun anew. It says so whichever
// came first, and the message does not count.
func TestIncarnations_Differ(t *testing.T) {
	for _, first := range []bool{true, false} {
		a := newAlone(t, "star", 0, 4)
		a.arrives(0)
		told, direct := a.from(1, Notify, 1, 0), a.from(3, Notify, 1, 0)
		told.Known = []uint32{0, 2, 0, 77}
		if first {
			a.want(a.hears(1, told), "")
			a.want(a.hears(3, direct), "3 report (restarted: [3])")
		} else {
			a.want(a.hears(3, direct), "")
			a.want(a.hears(1, told), "1 report (restarted: [3])")
		}
		if got := a.Missing(0, nil); len(got) != 2 || !a.agree.Has(3) {
			t.Errorf("told first: %t; it waits for %v, and gone are %v", first, got, a.agree.Gone())
		}
	}
}

// Any member may have begun anew, that of rank 0 as well. What such a message has brought does not count.
func TestIncarnations_DifferOfAnyRank(t *testing.T) {
	for rank := range 3 {
		a := newAlone(t, "concurrent", 3, 4)
		a.arrives(0)
		a.hears(rank, a.from(rank, StatusReply, 0, 0))
		teller := (rank + 1) % 3
		told := a.from(teller, Notify, 1, 1)
		told.Known = []uint32{1, 2, 3, 4}
		told.Known[rank] = 77
		a.want(a.hears(teller, told), fmt.Sprintf("%d report (restarted: [%d])", teller, rank))
		if a.is(Waiting, 1); !a.agree.Has(rank) {
			t.Errorf("rank %d: gone are %v", rank, a.agree.Gone())
		}
	}
}

// A list of another length, which no member sends, tells nothing.
func TestIncarnations_OfAnotherSize(t *testing.T) {
	for _, size := range []int{2, 4} {
		a := newAlone(t, "concurrent", 1, 3)
		a.arrives(0)
		release := a.from(0, Notify, 1, 1)
		release.Known = slices.Repeat([]uint32{77}, size)
		a.want(a.hears(0, release), "")
		if a.is(Idle, 1); !slices.Equal(a.incarnations, []uint32{1, 2, 0}) {
			t.Errorf("%d incarnations: it knows %v", size, a.incarnations)
		}
	}
}

// A member leaves and has not heard another one, but was told of it: it does not answer that one's later
// life with what it has completed.
func TestIncarnations_FarewellToALaterLife(t *testing.T) {
	a := newAlone(t, "tree:2", 0, 4)
	a.arrives(0)
	a.notify(1, 1, 0)
	subtree := a.from(2, Notify, 1, 1)
	subtree.Known = []uint32{0, 0, 3, 4}
	a.hears(2, subtree)
	a.is(Idle, 1)
	a.Leave(nil)
	nack := a.from(3, Nack, 1, 2)
	if out, ok := a.Farewell(a.now, 3, &nack, nil); !ok || sends(out) != "3 bye" || out[0].Message.Echo != 4 {
		t.Errorf("to the member it was with, it answers %q, %t", sends(out), ok)
	}
	nack.Incarnation = 77
	if out, ok := a.Farewell(a.now, 3, &nack, nil); ok || len(out) > 0 {
		t.Errorf("to a later life it answers %q", sends(out))
	}
}

// A barrier goes on without members that are agreed to have left, as they may have completed it. It fails
// once one of them shows that it will not say so: it does not have the group, or has begun anew.
func TestLeft_WithoutAWord(t *testing.T) {
	none := Message{Kind: NoSuchGroup, Identity: identity, Generation: 1, Answers: Nack}
	for name, word := range map[string]func(a *alone) Message{
		"no such group": func(*alone) Message { return none },
		"begun anew": func(a *alone) Message {
			a.incarnations[0] = 77
			return a.from(0, NotYet, 1, 1)
		},
		"takes this member for gone": func(a *alone) Message { return a.reports(0, Restarted, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlone(t, "concurrent", 1, 3)
			a.arrives(0)
			a.arrives(1)
			a.hears(2, a.decided(2, Left, 0))
			a.hears(2, none) // of one that is not gone it means nothing
			late := none
			late.Generation = 0
			a.hears(0, late)
			a.hears(0, a.reports(0, Restarted, 2)) // of another one
			a.is(Waiting, 1)
			a.hears(0, word(a))
			a.is(Failed, 1)
			a.failure(Left, 0)
			if s, _ := a.State(1); s != Failed {
				t.Errorf("number 1 is %v", s)
			}
		})
	}
}

// A member that is told that it has left itself, as stale reports may say, fails.
func TestLeft_Oneself(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 3)
	a.arrives(0)
	a.hears(2, a.reports(2, Left, 1))
	a.is(Failed, 1)
	a.failure(Left, 1)
}

// Once all is agreed, a barrier that goes on fails with the member that it waits for, and not with another one
// that has left meanwhile.
func TestLeft_AfterTheAgreement(t *testing.T) {
	a := newAlone(t, "shuffle", 1, 4)
	a.arrives(0)
	a.notify(0, 1, 0)
	a.hears(2, a.decided(2, Left, 0))
	a.is(Waiting, 1)
	none := Message{Kind: NoSuchGroup, Heard: true, Identity: identity, Generation: 1, Answers: Nack}
	a.hears(2, none)
	a.is(Waiting, 1)
	a.hears(3, a.from(3, NotYet, 1, 1), none)
	a.is(Failed, 1)
	a.failure(Left, 0)
}

// A member that has left while it waited, when others were agreed to be gone, says that it does not come:
// the others would wait for it.
func TestFarewell_WhileItWaited(t *testing.T) {
	a := newAlone(t, "tree:2", 2, 4)
	a.arrives(0)
	a.hears(0, a.decided(0, Left, 1))
	a.is(Waiting, 1)
	nack := a.from(0, Nack, 1, 1)
	out, ok := a.Farewell(a.now, 0, &nack, nil)
	if want := "0 report (left: [1]) decided, 0 fail (left: [1]) gen=1"; !ok || sends(out) != want {
		t.Errorf("it answers %q, %t, want %q", sends(out), ok, want)
	}
	a.notify(3, 1, 0)
	if out, ok := a.Farewell(a.now, 0, &nack, nil); !ok || sends(out) != "0 notify 1 gen=1" {
		t.Errorf("of what it has sent, it answers %q, %t", sends(out), ok)
	}
}

// A bye that stands for the release tells incarnations, too: a member that leaves its first generation by
// it knows all, and its own bye names them. One that would be too long does not.
func TestIncarnations_ByeTells(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 3)
	a.arrives(0)
	bye := a.from(0, Bye, 0, 0)
	bye.Echo, bye.Done, bye.Known = 2, []Done{{0, 1}}, []uint32{1, 2, 3}
	a.want(a.hears(0, bye), "0 bye ack")
	a.is(Idle, 1)
	if own := a.Goodbye(2); own.Echo != 3 || !slices.Equal(own.Known, bye.Known) {
		t.Errorf("its bye to 2 is to %d, and tells %v", own.Echo, own.Known)
	}
	for _, c := range []struct{ numbers, size, want int }{ // of 5 and 4 bytes, in 1,280
		{1, 318, 318}, {5, 318, 0}, {4, 315, 315}, {4, 316, 0},
	} {
		b := newAlone(t, "star", 1, c.size)
		for number := range c.numbers {
			b.arrives(uint8(number))
		}
		own := b.Goodbye(0)
		if b := own.Append(nil); len(own.Known) != c.want || len(b) > MaxLen || Parse(b, new(Message)) != nil {
			t.Errorf("with %d numbers %d are told of %d, want %d; %d bytes", c.numbers, len(own.Known), c.size, c.want, len(b))
		}
	}
}

// A member has left with another incarnation of a third one: it is gone, and what it has completed is not
// what this one waits in.
func TestIncarnations_ByeDiffers(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 4)
	a.arrives(0)
	a.hears(3, a.from(3, StatusReply, 0, 0))
	bye := a.from(0, Bye, 0, 0)
	bye.Echo, bye.Done, bye.Known = 2, []Done{{0, 1}}, []uint32{1, 2, 3, 77}
	a.want(a.hears(0, bye), "0 bye ack")
	a.is(Waiting, 1)
	a.want(a.passes(0), "2 report (left: [0], restarted: [3])?")
}
