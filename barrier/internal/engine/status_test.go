package engine

import (
	"slices"
	"testing"
)

// RequestStatus makes a query of a number, and ends the former one.
func (e *Engine) RequestStatus(number uint8, out []Send) []Send {
	for _, q := range e.machine(number).queries {
		e.EndQuery(q)
	}
	_, out = e.BeginQuery(number, out)
	return out
}

// RepeatStatus makes a number's query again, if there is one.
func (e *Engine) RepeatStatus(number uint8, out []Send) []Send {
	for _, q := range e.machine(number).queries {
		out = e.RepeatQuery(q, out)
	}
	return out
}

// Status returns the answers to a number's query, if there is one.
func (e *Engine) Status(number uint8) []Presence {
	for _, q := range e.machine(number).queries {
		return q.Answers
	}
	return nil
}

// reply is a member's answer to a status request of generation 1.
func (a *alone) reply(rank int, number uint8, entered bool) Message {
	m := a.from(rank, StatusReply, 1, 0)
	m.Number, m.Entered = number, entered
	return m
}

// A status request finds members that have entered, have not entered, have no such group, or do
// not answer.
func TestStatus(t *testing.T) {
	a := newAlone(t, "star", 0, 5)
	a.arrives(0)
	a.want(sends(a.RequestStatus(0, nil)), "all status request gen=1")
	a.want(a.hears(1, a.reply(1, 0, true)), "")
	a.want(a.hears(2, a.reply(2, 0, false)), "")
	a.want(a.hears(3, Message{Kind: NoSuchGroup, Identity: identity, Generation: 1}), "")
	if want := []Presence{Entered, Entered, NotEntered, NoGroup, NoAnswer}; !slices.Equal(a.Status(0), want) {
		t.Errorf("the status is %v, want %v", a.Status(0), want)
	}
	a.want(sends(a.RepeatStatus(0, nil)), "4 status request gen=1")
	a.is(Waiting, 1)
}

// Who has entered no barrier of a number asks for the first one, which it has not entered.
func TestStatus_BeforeTheFirst(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.want(sends(a.RequestStatus(0, nil)), "all status request gen=1")
	a.hears(1, a.reply(1, 0, true))
	if want := []Presence{NotEntered, Entered}; !slices.Equal(a.Status(0), want) {
		t.Errorf("the status is %v, want %v", a.Status(0), want)
	}
}

// Each of several queries has its answers, whatever becomes of the others.
func TestStatus_OfSeveralAskers(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	first, _ := a.BeginQuery(0, nil)
	a.hears(1, a.reply(1, 0, true))
	second, _ := a.BeginQuery(0, nil)
	a.hears(2, a.reply(2, 0, false))
	a.EndQuery(first)
	a.hears(1, a.reply(1, 0, false))
	for q, want := range map[*Query][]Presence{first: {Entered, Entered, NotEntered}, second: {Entered, NotEntered, NotEntered}} {
		if !slices.Equal(q.Answers, want) {
			t.Errorf("%v, want %v", q.Answers, want)
		}
	}
	if a.EndQuery(second); len(a.machine(0).queries) != 0 {
		t.Error("a query is kept that was ended")
	}
}

// Requests for two numbers at one time do not take each other's answers.
func TestStatus_OfTwoNumbers(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.arrives(1)
	a.RequestStatus(0, nil)
	a.RequestStatus(1, nil)
	a.hears(1, a.reply(1, 0, true))
	a.hears(2, a.reply(2, 1, true))
	a.hears(1, a.reply(1, 1, false))
	for number, want := range [][]Presence{{Entered, Entered, NoAnswer}, {Entered, NotEntered, Entered}} {
		if got := a.Status(uint8(number)); !slices.Equal(got, want) {
			t.Errorf("the status of number %d is %v, want %v", number, got, want)
		}
	}
}

// An answer to a request of the generation before does not count for this one.
func TestStatus_OfAnEarlierGeneration(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.RequestStatus(0, nil)
	a.notify(1, 1, 0)
	a.arrives(0)
	a.RequestStatus(0, nil)
	a.hears(1, a.reply(1, 0, true)) // of generation 1
	if a.Status(0)[1] != NoAnswer {
		t.Errorf("the status is %v: that was said of generation 1", a.Status(0))
	}
}

// Answers are of the generation that was asked for, also if this member has entered the next one
// meanwhile.
func TestStatus_WhileTheNextGenerationIsEntered(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.RequestStatus(0, nil)
	a.hears(1, a.reply(1, 0, true))
	a.notify(1, 1, 0)
	a.notify(2, 1, 0)
	a.arrives(0)
	a.want(sends(a.RepeatStatus(0, nil)), "2 status request gen=1")
	a.hears(2, a.reply(2, 0, true))
	if want := []Presence{Entered, Entered, Entered}; !slices.Equal(a.Status(0), want) {
		t.Errorf("the status is %v, want %v", a.Status(0), want)
	}
}

// A member answers a status request in any state.
func TestStatus_Answer(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	for _, entered := range []bool{false, true} {
		request := a.from(1, StatusRequest, 1, 0)
		out := a.Handle(a.now, 1, &request, nil)
		if len(out) != 1 || out[0].To != 1 || out[0].Message.Kind != StatusReply || out[0].Message.Entered != entered {
			t.Errorf("answers %q, want a status reply, entered %t", sends(out), entered)
		}
		if !entered {
			a.arrives(0)
		}
	}
}

// A node that has not made its group yet runs no other algorithm, and is not down.
func TestNoSuchGroup(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	for range 100 {
		a.passes(DefaultPeerTimeout / 20)
		a.hears(1, Message{Kind: NoSuchGroup, Identity: identity, Generation: 1})
	}
	a.is(Waiting, 1)
	a.want(a.notify(1, 1, 0), "1 notify 1 gen=1")
	a.is(Idle, 1)
}

// A member that was heard in the group before it was asked, and has no such group, has left it. What
// it was asked before proves nothing, however often that comes: the answers were long on their way.
func TestNoSuchGroup_OfOneThatWasHeard(t *testing.T) {
	none := Message{Kind: NoSuchGroup, Identity: identity, Generation: 1, Answers: Nack}
	ofReport := Message{Kind: NoSuchGroup, Identity: identity, Answers: Report}
	for _, last := range []Message{none, ofReport} {
		a := newAlone(t, "star", 0, 3)
		a.arrives(0)
		a.passes(firstNack)
		a.hears(1, a.from(1, NotYet, 1, 0))
		for range 10 {
			a.want(a.hears(1, none, ofReport), "")
			a.hears(1, a.from(1, NotYet, 1, 0))
		}
		for range 10 {
			a.want(a.hears(1, none, ofReport), "")
		}
		a.is(Waiting, 1)
		a.want(a.passes(0), "")
		last.Heard = true
		a.hears(1, last)
		a.want(a.passes(0), "2 report (left: [1])?")
		a.hears(2, a.reports(2, Left, 1))
		a.is(Failed, 1)
		a.failure(Left, 1)
	}
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.hears(1, a.from(1, NotYet, 1, 0))
	none.Heard, none.Generation = true, 0 // of the generation before: it may have left after that
	a.hears(1, none)
	none.Number, none.Generation = 5, 1 // nobody waits there
	a.hears(1, none)
	a.want(a.passes(0), "")
	b := newAlone(t, "star", 0, 3)
	b.arrives(0)
	none.Number = 0
	for range 10 {
		b.want(b.hears(2, none), "") // it was never heard: it has not made the group yet
	}
	b.want(b.passes(0), "")
	b.is(Waiting, 1)
}

// A barrier without one that has left fails where another member has no such group either, and was
// never heard: a process that begins anew finds a group that is over, and does not wait for ever.
func TestNoSuchGroup_WhereOneHasLeft(t *testing.T) {
	a := newAlone(t, "concurrent", 2, 3)
	a.arrives(0)
	a.hears(1, a.reports(1, Left, 1))
	ofReport := Message{Kind: NoSuchGroup, Identity: identity, Generation: 1, Answers: Report}
	for range 10 {
		a.passes(DefaultPeerTimeout / nacksPerTimeout)
		a.hears(0, ofReport)
	}
	if f := a.Agreed(); f == nil {
		t.Fatal("nothing is agreed")
	}
	a.is(Waiting, 1) // the one that has left may have completed it
	of := Message{Kind: NoSuchGroup, Identity: identity, Answers: Nack}
	a.hears(0, of) // of the generation before
	of.Number, of.Generation = 5, 1
	a.hears(0, of) // nobody waits there
	a.is(Waiting, 1)
	of.Number = 0
	a.hears(0, of)
	a.is(Failed, 1)
	a.failure(Left, 1)
}

// Nacks and reports say whether their receiver was heard in the group.
func TestHeard(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(0)
	a.hears(1, a.from(1, NotYet, 1, 0))
	a.now = a.now.Add(firstNack)
	out := a.Advance(a.now, nil)
	a.Accuse(a.now, 2, Silent)
	b := newAlone(t, "star", 0, 4)
	b.Accuse(b.now, 3, Silent)
	b.hears(1, b.reports(1, Silent))
	for _, s := range append(append(out, a.Advance(a.now, nil)...), b.Advance(b.now, nil)...) {
		var m Message
		if err := Parse(s.Message.Append(nil), &m); err != nil || m.Heard != (s.To == 1) {
			t.Errorf("to %d goes %v, heard %t; %v", s.To, &m, m.Heard, err)
		}
	}
}

// An answer that the group does not exist, which was long on its way, does not take the place of a
// later one.
func TestStatus_NoGroupLate(t *testing.T) {
	a := newAlone(t, "star", 0, 2)
	a.arrives(0)
	a.RequestStatus(0, nil)
	a.hears(1, a.reply(1, 0, false))
	a.hears(1, Message{Kind: NoSuchGroup, Identity: identity, Generation: 1, Answers: StatusRequest})
	if a.Status(0)[1] != NotEntered {
		t.Errorf("the status is %v", a.Status(0))
	}
}
