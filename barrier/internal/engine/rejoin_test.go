package engine

import (
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
)

// An engine that moves to another epoch forgets what it has heard, and enters its barriers again.
func TestRejoin(t *testing.T) {
	a := newAlone(t, "tree:2", 2, 4)
	a.arrives(0)
	a.want(a.notify(3, 1, 0), "0 notify 1 gen=1")
	a.notify(3, 2, 0) // early
	if !a.Fresh() {
		t.Fatal("it has completed nothing, and is not fresh")
	}
	old := a.from(3, Notify, 1, 0)
	a.want(sends(a.Rejoin(a.now, 3, nil)), "")
	if got := a.Missing(0, nil); len(got) != 1 || got[0] != 3 {
		t.Errorf("it waits for %v, want 3", got)
	}
	a.want(a.hears(3, old), "") // of the old epoch
	anew := old
	anew.Identity.Epoch, anew.Incarnation = 3, 77
	a.want(a.hears(3, anew), "0 notify 1 gen=1")
	a.is(Waiting, 1)
	if a.waiting[0].parities[0].here[0] {
		t.Error("the early message of the old epoch is kept")
	}
}

// A leaf sends its notify again in the new epoch.
func TestRejoin_NotifiesAgain(t *testing.T) {
	a := newAlone(t, "star", 1, 3)
	a.want(a.arrives(0), "0 notify 0 gen=1")
	out := a.Rejoin(a.now, 2, nil)
	a.want(sends(out), "0 notify 0 gen=1")
	if e := out[0].Message.Identity.Epoch; e != 2 {
		t.Errorf("epoch %d, want 2", e)
	}
}

// What is missing in the new epoch is asked for as soon as in a barrier that was just entered.
func TestRejoin_AsksSoon(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.want(a.passes(firstNack), "1 nack 0 gen=1") // and again after twice the time
	a.want(sends(a.Rejoin(a.now, 2, nil)), "")
	a.want(a.passes(firstNack-1), "")
	a.want(a.passes(1), "1 nack 0 gen=1")
}

// A barrier that is entered again in the new epoch is measured, also if something was asked for in the old
// one: its answer cannot be a late one.
func TestRejoin_IsMeasured(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.want(a.passes(firstNack), "1 nack 0 gen=1")
	a.Rejoin(a.now, 2, nil)
	m := a.machine(0)
	before := m.stepTime
	anew := a.from(1, Notify, 1, 0)
	anew.Identity.Epoch = 2
	a.want(a.passes(firstNack/2), "")
	a.hears(1, anew)
	a.is(Idle, 1)
	if m.stepTime == before {
		t.Error("the time that it took is not known")
	}
}

// Only an engine that has completed nothing can begin again in another epoch.
func TestFresh(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(a *alone)
		want bool
	}{
		{"nothing entered", func(*alone) {}, true},
		{"waiting in the first barrier", func(a *alone) { a.arrives(0) }, true},
		{"waiting in two numbers", func(a *alone) { a.arrives(0); a.arrives(1) }, true},
		{"completed one", func(a *alone) { a.arrives(0); a.notify(0, 1, 1) }, false},
		{"waiting in the second", func(a *alone) { a.arrives(0); a.notify(0, 1, 1); a.arrives(0) }, false},
		{"failed", func(a *alone) { a.arrives(0); a.hears(0, a.decided(0, Silent, 0)) }, false},
		{"a failure pending", func(a *alone) { a.hears(0, a.failed(0, 1, OtherAlgorithm, 0)) }, false},
		{"a member is gone", func(a *alone) { a.hears(0, a.decided(0, Silent, 2)) }, false},
	} {
		a := newAlone(t, "concurrent", 1, 3)
		c.do(a)
		if a.Fresh() != c.want {
			t.Errorf("%s: fresh is %t, want %t", c.name, a.Fresh(), c.want)
		}
	}
}

// A member that has left answers those that lack a message of it, and not those that have begun
// anew.
func TestFarewell(t *testing.T) {
	done := func(a *alone, generations uint32) {
		for g := range generations {
			a.arrives(0)
			a.notify(0, g+1, 1)
		}
	}
	for _, c := range []struct {
		name       string
		do         func(a *alone)
		rank       int
		generation uint32
		want       bool
	}{
		{"never heard, lacks the last generation", func(a *alone) { done(a, 3) }, 2, 3, false},
		{"never heard, lacks the generation after", func(a *alone) { done(a, 3) }, 2, 4, false},
		{"never heard, lacks an earlier generation", func(a *alone) { done(a, 3) }, 2, 2, true},
		{"never heard, lacks the first and only one", func(a *alone) { done(a, 1) }, 2, 1, false},
		{"waiting in the second, lacks the first", func(a *alone) { done(a, 1); a.arrives(0) }, 2, 1, false},
		{"heard by this incarnation", func(a *alone) { a.hears(2, a.from(2, StatusReply, 0, 0)) }, 2, 1, false},
		{"heard by another one", func(a *alone) {
			m := a.from(2, StatusReply, 0, 0)
			m.Incarnation = 77
			a.hears(2, m)
		}, 2, 1, true},
		{"down", func(a *alone) { a.hears(0, a.decided(0, Silent, 2)) }, 2, 1, true},
	} {
		a := newAlone(t, "concurrent", 1, 3)
		c.do(a)
		nack := a.from(c.rank, Nack, c.generation, 1)
		if _, ok := a.Farewell(a.now, c.rank, &nack, nil); ok == c.want {
			t.Errorf("%s: begun anew is %t, want %t", c.name, !ok, c.want)
		}
	}
}

// A goodbye in the old epoch says nothing of the new one.
func TestRejoin_ForgetsGoodbyes(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 2)
	a.want(a.hears(0, a.from(0, Bye, 0, 0)), "0 bye ack")
	if !a.Fresh() {
		t.Fatal("it is not fresh")
	}
	a.Rejoin(a.now, 7, nil)
	a.want(a.arrives(0), "0 notify 0 gen=1")
	a.is(Waiting, 1)
}

// A member that has left answers questions, and no other reports: another one that has left would
// answer in turn, for ever. It says goodbye, too, or, if it goes on with the survivors, that it is not
// in this group any more.
func TestFarewell_OfReports(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 3)
	a.hears(0, a.decided(0, Silent, 2))
	for _, last := range []string{"0 bye", "0 no such group gen=0"} {
		want := "0 report (silent: [2]) decided, " + last
		for _, query := range []bool{false, true} {
			m := a.decided(0, Silent, 2)
			m.Report.Query = query
			out, ok := a.Farewell(a.now, 0, &m, nil)
			if want := map[bool]string{true: want}[query]; !ok || sends(out) != want {
				t.Errorf("a report, query %t: it answers %q, %t, want %q", query, sends(out), ok, want)
			}
		}
		a.Survive()
	}
	b := newAlone(t, "concurrent", 1, 3)
	b.hears(0, b.from(0, NotYet, 1, 0))
	for query, want := range map[bool]string{false: "", true: "0 bye"} { // it knows of no death
		m := b.reports(0, Restarted, 1)
		m.Report.Query = query
		if out, ok := b.Farewell(b.now, 0, &m, nil); !ok || sends(out) != want {
			t.Errorf("a report, query %t: it answers %q, %t, want %q", query, sends(out), ok, want)
		}
	}
	if _, _, is := a.Outside(0); is {
		t.Error("both have decided alike")
	}
	m := a.decided(0, Silent, 1, 2)
	a.Farewell(a.now, 0, &m, nil)
	if who, why, is := a.Outside(0); !is || who != 1 || why != Silent {
		t.Errorf("outside is %d (%v), %t, want this member", who, why, is)
	}
}

// A question is a report that wants an answer, on the network that it was asked for.
func TestQuestion(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 4)
	a.hears(0, a.decided(0, Silent, 3))
	a.want(sends([]Send{a.Question(2, 1)}), "2 report (silent: [3]) decided? nic=1")
}

// A member that has left tells one that is gone, and lives, that it is: the others have agreed so.
func TestFarewell_OfWhoIsGone(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 3)
	a.notify(2, 1, 1)
	a.hears(0, a.decided(0, Silent, 2))
	m := a.from(2, Nack, 1, 0)
	if out, ok := a.Farewell(a.now, 2, &m, nil); !ok || sends(out) != "2 report (silent: [2]) decided" {
		t.Errorf("it answers %q, %t, want what was decided", sends(out), ok)
	}
}

// A member is asked what it has decided until it has said so, and then whether it is there.
func TestInquire(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 4)
	if out, known := a.Inquire(0, nil); !known || len(out) > 0 {
		t.Errorf("nothing was agreed, and it asks %q", sends(out))
	}
	a.hears(0, a.decided(0, Silent, 3))
	for range 2 {
		out, known := a.Inquire(2, nil)
		if a.want(sends(out), "2 report (silent: [3]) decided?"); known {
			t.Error("2 has said nothing")
		}
	}
	a.hears(2, a.decided(2, Silent, 3))
	for _, rank := range []int{0, 2} {
		out, known := a.Inquire(rank, nil)
		if a.want(sends(out), fmt.Sprintf("%d report?", rank)); !known {
			t.Errorf("%d has decided", rank)
		}
	}
}

// A member that does not have the group of survivors yet lives: it is not silent, in a barrier or in the
// agreement.
func TestAlive(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.notify(1, 1, 0)
	pass := func(alive bool) string {
		for range 40 {
			a.passes(DefaultPeerTimeout / 20)
			if alive {
				a.Alive(2)
			}
		}
		return ReasonName(failureOf(append(a.agree.Gone(), agreement.Gone{})).Reasons[0])
	}
	if why := pass(true); why != "" {
		t.Errorf("in a barrier it is %s", why)
	}
	a.Accuse(a.now, 1, Left)
	if pass(true); a.agree.Has(2) || a.agree.State() != agreement.Querying {
		t.Errorf("in the agreement: state %d, gone are %v", a.agree.State(), a.agree.Gone())
	}
	if pass(false); !a.agree.Has(2) {
		t.Error("it is silent, and not gone")
	}
}
