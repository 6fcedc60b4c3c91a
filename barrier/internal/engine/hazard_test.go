package engine

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

// Generations wrap: a program may run 2^32 barriers in a day.
func TestGeneration_Wraps(t *testing.T) {
	for _, name := range algorithms {
		const n = 5
		net := paper
		net.Nodes = n
		net.Faults.Loss, net.Faults.Duplicate = .1, .1
		g := newCluster(name, net)
		for node := range n {
			g.engine(node, 0).machine(0).generation = math.MaxUint32 - 2
			g.in[node][barrier{}] = math.MaxUint32 - 2
		}
		left := 0
		g.left = func(node int, b barrier) {
			if left++; left <= 9*n {
				g.arrive(node, b)
			}
		}
		for node := range n {
			g.arrive(node, barrier{})
		}
		g.events(g.Now().Add(time.Minute))
		g.check(t)
		if left < 9*n {
			t.Errorf("%s: %d barriers were left, want %d", name, left, 9*n)
		}
	}
}

// Told apart by one bit, generations are mistaken: a duplicate that is two barriers late has the same
// bit.
func TestDuplicate_TwoBarriersLate(t *testing.T) {
	for _, parityOnly := range []bool{false, true} {
		a := newAlone(t, "concurrent", 1, 2)
		a.parityOnly = parityOnly
		for g := range uint32(2) {
			a.arrives(0)
			a.notify(0, g+1, 1)
		}
		a.arrives(0)
		a.notify(0, 1, 1) // once more
		if state, _ := a.State(0); (state == Idle) != parityOnly {
			t.Errorf("told apart by parity alone: %t; after the duplicate it is %v", parityOnly, state)
		}
	}
}

// Messages that come twice or late, or are not in the schedule, are counted and do nothing else.
func TestCounters(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.notify(1, 1, 0)
	a.notify(1, 1, 0)                   // double
	a.notify(1, 1, 9)                   // no such label
	a.notify(1, 0, 0)                   // late
	a.hears(0, a.from(0, Notify, 1, 0)) // from itself
	a.hears(5, a.from(5, Notify, 1, 0)) // from no member
	a.notify(2, 1, 0)
	a.is(Idle, 1)
	a.notify(2, 1, 0) // late
	a.hears(1, a.from(1, Nack, 1, 1))
	got := a.stats
	got.Barriers, got.Wait, got.MaxWait = 0, 0, 0
	if want := (Stats{Notifies: 2, Resent: 1, Late: 2, Duplicates: 1, Unexpected: 3}); got != want {
		t.Errorf("counters are %+v, want %+v", got, want)
	}
}

// A message of the next generation is kept: its sender has left this one.
func TestEarlyMessage(t *testing.T) {
	a := newAlone(t, "tree:2", 2, 4)
	a.want(a.notify(3, 1, 0), "")
	a.is(Idle, 0)
	a.want(a.arrives(0), "0 notify 1 gen=1")
	a.notify(0, 1, 2)
	a.notify(3, 2, 0)
	a.notify(3, 2, 0)
	a.want(a.arrives(0), "0 notify 1 gen=2")
	a.is(Waiting, 2)
}

// A member that has begun anew does not know what it has sent: the group is broken. It is told
// so.
func TestRestarted(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.notify(1, 1, 0)
	a.arrives(3)
	anew := a.from(1, Notify, 1, 0)
	anew.Incarnation = 77
	a.want(a.hears(1, anew), "1 report (restarted: [1])")
	a.is(Waiting, 1)
	a.want(a.passes(0), "2 report (restarted: [1])?")
	a.hears(2, a.reports(2, Restarted, 1))
	a.is(Failed, 1)
	a.failure(Restarted, 1)
	if s, _ := a.State(3); s != Failed {
		t.Errorf("number 3 is %v", s)
	}
	if _, err := a.Arrive(a.now, 9, nil); !errors.Is(err, ErrFailed) {
		t.Errorf("Arrive of another number: %v", err)
	}
}

// An engine that has begun anew itself hears of generations that it never entered.
func TestRestarted_Oneself(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.want(a.notify(1, 7, 0), "1 report (restarted: [0])")
	a.want(a.passes(0), "1 report (restarted: [0]), 2 report (restarted: [0])")
	if _, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) {
		t.Errorf("Arrive: %v", err)
	}
	a.failure(Restarted, 0)
}

// A NotYet of a generation long past shows that its sender has begun anew.
func TestRestarted_ByItsAnswer(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	for g := range uint32(3) {
		a.arrives(0)
		if g < 2 {
			a.notify(1, g+1, 0)
		}
	}
	late := a.from(1, NotYet, 3, 0)
	late.Own = 1
	a.want(a.hears(1, late), "")
	a.is(Failed, 3)
	a.failure(Restarted, 1)
}

// A nack that is two barriers late, as those of a member begun anew are, is answered and does no
// harm.
func TestAsk_TwoBarriersLate(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	for g := range uint32(3) {
		a.arrives(0)
		a.notify(1, g+1, 0)
	}
	answer := "1 fail (restarted: [1]) gen=1"
	a.want(a.hears(1, a.from(1, Nack, 1, 1)), answer)
	b := newAlone(t, "star", 1, 2)
	for g := range uint32(3) {
		b.arrives(0)
		b.notify(0, g+1, 1)
	}
	b.hears(0, b.failed(0, 1, Restarted, 1))
	b.arrives(0)
	b.is(Waiting, 4)
}

// A failure of the next generation is pending until this node enters it.
func TestPendingFailure(t *testing.T) {
	a := newAlone(t, "star", 1, 3)
	a.arrives(0)
	a.hears(0, a.failed(0, 2, OtherAlgorithm, 2)) // 0 is ahead
	a.is(Waiting, 1)
	a.notify(0, 1, 1)
	a.is(Idle, 1)
	if _, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) {
		t.Errorf("Arrive: %v", err)
	}
	a.failure(OtherAlgorithm, 2)
	a.want(a.arrives(1), "0 notify 0 number=1 gen=1") // other numbers go on
}

// A failure of a past generation does not end this one. Once it is agreed who is gone, all barriers
// end.
func TestFail_Late(t *testing.T) {
	a := newAlone(t, "star", 1, 3)
	a.arrives(0)
	a.notify(0, 1, 1)
	a.arrives(0)
	a.hears(0, a.failed(0, 1, OtherAlgorithm, 2))
	a.hears(0, a.failed(0, 1, Restarted, 1))
	if a.is(Waiting, 2); a.stats.Late != 2 {
		t.Errorf("%d late messages are counted, want 2", a.stats.Late)
	}
	a.notify(0, 2, 1)
	a.is(Idle, 2)
	a.arrives(0)
	a.hears(0, a.decided(0, Silent, 2))
	a.is(Failed, 3)
	if _, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) {
		t.Errorf("Arrive: %v", err)
	}
	a.failure(Silent, 2)
}

// A failure of ranks that the group does not have is ignored.
func TestFail_OfNobody(t *testing.T) {
	a := newAlone(t, "star", 1, 3)
	a.arrives(0)
	a.hears(0, a.decided(0, Silent, 3))
	a.hears(0, a.failed(0, 1, OtherAlgorithm, 3))
	a.is(Waiting, 1)
	if a.stats.Unexpected != 2 {
		t.Errorf("%d messages were unexpected, want 2", a.stats.Unexpected)
	}
}

// A bye counts once, is answered each time, and ends the barriers that its sender has not
// completed, of all numbers.
func TestBye(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 3)
	a.arrives(0)
	a.arrives(1)
	a.arrives(2)
	bye := a.from(0, Bye, 0, 0)
	bye.Done = []Done{{0, 1}, {2, 0}}
	a.want(a.hears(0, bye), "0 bye ack")
	a.is(Idle, 1)
	for number := range uint8(3) {
		if s, _ := a.State(number); (s == Waiting) != (number > 0) {
			t.Errorf("number %d is %v before the others agree", number, s)
		}
	}
	a.hears(2, a.reports(2, Left, 0))
	for number := range uint8(3) {
		if s, _ := a.State(number); (s == Failed) != (number > 0) {
			t.Errorf("number %d is %v after the others agree", number, s)
		}
	}
	a.want(a.hears(0, bye), "0 bye ack")
	if _, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) {
		t.Errorf("Arrive: %v", err)
	}
	a.failure(Left, 0)
}

// Leave says bye to members that may wait for this one, until they answer or leave themselves,
// and not to those that are down.
func TestLeave(t *testing.T) {
	a := newAlone(t, "concurrent", 0, 5)
	a.arrives(0)
	for r := 1; r < 5; r++ {
		a.notify(r, 1, 0)
	}
	a.want(sends(a.Leave(nil)), "1 bye, 2 bye, 3 bye, 4 bye")
	if bye := a.Goodbye(1); len(bye.Done) != 1 || bye.Done[0] != (Done{0, 1}) {
		t.Errorf("it has completed %v", bye.Done)
	}
	a.hears(1, a.from(1, ByeAck, 0, 0))
	a.want(a.hears(2, a.from(2, Bye, 0, 0)), "2 bye ack")
	a.hears(3, Message{Kind: ByeAck, Identity: identity}) // from one that has forgotten the group: no incarnation
	a.want(sends(a.Leave(nil)), "4 bye")
	if a.ByeAcked() {
		t.Error("all have heard, but for 4")
	}
	a.hears(4, a.from(4, ByeAck, 0, 0))
	if !a.ByeAcked() {
		t.Error("not all have heard")
	}
	if a.leavers != 1 || !a.peers[2].left {
		t.Errorf("%d have left, want 2 alone", a.leavers)
	}
}

// A bye names the generations that were completed, not those that were entered.
func TestGoodbye_WhileWaiting(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.notify(1, 1, 0)
	a.arrives(0)
	a.arrives(4)
	bye := a.Goodbye(1)
	if len(bye.Done) != 2 || bye.Done[0] != (Done{0, 1}) || bye.Done[1] != (Done{4, 0}) {
		t.Errorf("it has completed %v", bye.Done)
	}
}

// A bye of more numbers than a message has room for names those that were entered last.
func TestGoodbye_OfManyNumbers(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.cfg.MaxMessage = headLen + byeLen + 3*doneLen + 2
	for _, number := range []uint8{7, 200, 0, 3} {
		a.now = a.now.Add(1)
		a.arrives(number)
		bye := a.Goodbye(1)
		if !bye.fits(a.cfg.MaxMessage) {
			t.Errorf("of %d numbers: it does not fit", len(bye.Done))
		}
	}
	bye := a.Goodbye(1)
	if want := []Done{{3, 0}, {0, 0}, {200, 0}}; !slices.Equal(bye.Done, want) {
		t.Errorf("it names %v, want %v", bye.Done, want)
	}
}

// A barrier does not allocate.
func TestAllocations(t *testing.T) {
	a := newAlone(t, "tree:2", 2, 4)
	out := make([]Send, 0, 16)
	g := uint32(0)
	barrier := func() {
		g++
		out, _ = a.Arrive(a.now, 0, out[:0])
		m := a.from(3, Notify, g, 0)
		out = a.Handle(a.now, 3, &m, out)
		m = a.from(0, Notify, g, 2)
		out = a.Handle(a.now, 0, &m, out)
		a.Ended()
	}
	if n := testing.AllocsPerRun(100, barrier); n != 0 {
		t.Errorf("%v allocations in a barrier, want none", n)
	}
	a.is(Idle, g)
}

// Byes go to the members that await messages, once each; in a large group they are found
// quickly.
func TestLeave_ToDependants(t *testing.T) {
	for _, c := range []struct {
		algo       string
		rank, size int
		want       string
	}{
		{"tree:2", 1, 4, "0 bye"},
		{"tree:2", 0, 4, "1 bye, 2 bye, 3 bye"},
		{"chassis-repeated", 1, 7, "0 bye, 6 bye"},
		{"star", 0, 1, ""},
	} {
		a := newAlone(t, c.algo, c.rank, c.size)
		if got := sends(a.Leave(nil)); got != c.want {
			t.Errorf("%s, rank %d of %d: %q, want %q", c.algo, c.rank, c.size, got, c.want)
		}
	}
	quickest := time.Hour
	for range 5 { // the machine may stand still meanwhile, but not each time
		a := newAlone(t, "star", 0, 4096)
		begun := time.Now()
		if out := a.Leave(nil); len(out) != 4095 {
			t.Errorf("%d goodbyes, want 4095", len(out))
		}
		quickest = min(quickest, time.Since(begun))
	}
	if quickest > time.Second {
		t.Errorf("4095 goodbyes took %v", quickest)
	}
}

// A barrier that is entered with a failure pending sends nothing, although the one before has
// sent all its messages.
func TestPendingFailure_NotifiesNobody(t *testing.T) {
	a := newAlone(t, "concurrent", 0, 3)
	a.arrives(0)
	a.notify(1, 1, 0)
	a.want(a.notify(2, 1, 0), "all notify 1 gen=1")
	a.is(Idle, 1)
	a.hears(1, a.decided(1, Silent, 2))
	if out, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) || len(out) > 0 {
		t.Fatalf("Arrive: %v, sends %q", err, sends(out))
	}
	a.want(a.hears(1, a.from(1, Nack, 2, 1)), "1 report (silent: [2]) decided, 1 fail (silent: [2]) gen=2")
}

// A bye names generation 0 once generations have wrapped.
func TestGoodbye_AfterGenerationZero(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.machine(0).generation = math.MaxUint32
	a.arrives(0)
	a.notify(1, 0, 0)
	a.is(Idle, 0)
	if bye := a.Goodbye(1); len(bye.Done) != 1 || bye.Done[0] != (Done{0, 0}) {
		t.Errorf("it has completed %v", bye.Done)
	}
}

// Without a member that has completed it, a barrier goes on. It fails once another member says that
// it has failed there, also if that one took this member for gone.
func TestFail_OfAMemberThatDecidedOtherwise(t *testing.T) {
	for _, others := range []int{0, 1} {
		a := newAlone(t, "shuffle", 1, 4)
		a.arrives(0)
		bye := a.from(0, Bye, 0, 0)
		bye.Done = []Done{{0, 1}}
		a.hears(0, bye)
		a.hears(2, a.decided(2, Left, 0))
		a.is(Waiting, 1)
		a.hears(3, a.decided(3, Silent, others), a.failed(3, 1, Silent, others))
		a.is(Failed, 1)
		a.failure(Left, 0)
	}
}

// A bye that comes again, as its answer was lost, counts once.
func TestBye_Again(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	bye := a.from(1, Bye, 0, 0)
	bye.Done = []Done{{0, 1}}
	for range 3 {
		a.want(a.hears(1, bye), "1 bye ack")
	}
	if a.is(Waiting, 1); a.stats.Duplicates+a.stats.Late > 0 || a.leavers != 1 {
		t.Errorf("%d have left, with %+v", a.leavers, a.stats)
	}
}

// A member that hears in its barrier that the others took it for gone has failed, and names itself.
func TestFail_OfOneself(t *testing.T) {
	a := newAlone(t, "star", 1, 3)
	a.arrives(0)
	a.hears(0, a.failed(0, 1, Restarted, 1))
	a.is(Failed, 1)
	a.failure(Restarted, 1)
}
