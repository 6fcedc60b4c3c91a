package consensus

import (
	"errors"
	"testing"
)

// state is a member's first State.
func state(flags uint64, down Set) *Message {
	return &Message{Kind: State, Number: 1, Contribution: Contribution{Flags: flags, Down: down}}
}

func set(ranks ...int) (s Set) {
	for _, k := range ranks {
		s = s.With(k)
	}
	return s
}

func handle(t *testing.T, m *Member, from int, msg *Message) []Output {
	t.Helper()
	out, err := m.Handle(from, msg, nil)
	if err != nil {
		t.Fatalf("%+v of %d: %v", msg, from, err)
	}
	return out
}

// Who is down to another one is out, also if the coordinator hears it; of two that say so of each
// other, the higher rank. The coordinator itself is not.
func TestCoordinator_TakesOthersWord(t *testing.T) {
	for _, c := range []struct {
		name  string
		downs map[int]Set // by rank
		out   Set
	}{
		{"nobody is down", nil, nil},
		{"2 is down to 1", map[int]Set{1: set(2)}, set(2)},
		{"1 is down to 2", map[int]Set{2: set(1)}, set(1)},
		{"1 and 2 are down to each other", map[int]Set{1: set(2), 2: set(1)}, set(2)},
		{"3 is down to 1, and 2 to 3", map[int]Set{1: set(3), 3: set(2)}, set(3)},
		{"the coordinator is down to 1", map[int]Set{1: set(0)}, nil},
	} {
		m := New(0, 4)
		m.Begin(Contribution{Flags: 7}, nil)
		var out []Output
		for k := 1; k < 4; k++ {
			out = append(out, handle(t, m, k, state(7, c.downs[k]))...)
		}
		if len(out) == 0 || out[0].Message.Kind != Propose || !out[0].Message.Value.Failed.equal(c.out) {
			t.Errorf("%s: %+v, want %v to be out", c.name, out, c.out)
		}
	}
}

// A member that nobody is left to, and that one has given up, is excluded, and agrees on nothing
// alone; but not if who has given it up is out itself.
func TestGivenUpBy(t *testing.T) {
	type told = func(m *Member, rank int, out []Output) []Output
	down, givenUp := (*Member).Down, (*Member).GivenUpBy
	for _, c := range []struct {
		name string
		out  Set    // by a decision before
		gone []told // by rank
		want Action
	}{
		{"two are down", nil, []told{down, down}, Decided},
		{"one is down, one has given it up", nil, []told{down, givenUp}, Excluded},
		{"two have given it up", nil, []told{givenUp, givenUp}, Excluded},
		{"who is out has given it up", set(0), []told{givenUp, down}, Decided},
		{"one is out, another one has given it up", set(0), []told{down, givenUp}, Excluded},
	} {
		for _, begunFirst := range []bool{true, false} {
			m := New(2, 3)
			if c.out != nil {
				m.Begin(Contribution{}, nil)
				handle(t, m, 1, &Message{Kind: Decide, Number: 1, Value: Value{Failed: c.out}})
			}
			var out []Output
			if begunFirst {
				m.Begin(Contribution{}, nil)
			}
			for k, tell := range c.gone {
				out = tell(m, k, nil)
			}
			if !begunFirst {
				out = m.Begin(Contribution{}, nil)
			}
			if len(out) == 0 || out[len(out)-1].Do != c.want {
				t.Errorf("%s, begun first %v: %+v, want %v at last", c.name, begunFirst, out, c.want)
			}
		}
	}
}

// A member that was left out elsewhere is excluded from what it has begun, and from what it begins,
// and tells nobody a value.
func TestLeftOut(t *testing.T) {
	m := New(0, 3)
	m.Begin(Contribution{}, nil)
	m.Begin(Contribution{}, nil)
	out := m.LeftOut(nil)
	out = append(out, m.Begin(Contribution{}, nil)...)
	if len(out) != 3 {
		t.Errorf("%+v, want three ends", out)
	}
	for _, o := range out {
		if o.Do != Excluded {
			t.Errorf("%+v, want none but ends", o)
		}
	}
	if out, err := m.Handle(1, state(7, nil), nil); len(out) > 0 || err == nil {
		t.Errorf("it answers a state with %+v, %v", out, err)
	}
}

// A message that makes no sense changes nothing.
func TestHandle_WhatMakesNoSense(t *testing.T) {
	m := New(1, 3)
	m.Begin(Contribution{Flags: 1}, nil)
	for name, c := range map[string]struct {
		from int
		msg  Message
	}{
		"of itself":                        {1, *state(1, nil)},
		"of nobody":                        {3, *state(1, nil)},
		"no kind":                          {0, Message{Number: 1}},
		"an unknown kind":                  {0, Message{Kind: Decide + 1, Number: 1}},
		"no number":                        {0, Message{Kind: State}},
		"the agreement after the next one": {0, Message{Kind: State, Number: 2}},
		"a rank that is none":              {0, *state(1, set(3))},
		"a set that ends with nobody":      {0, *state(1, Set{0})},
		"a set that is too long":           {0, *state(1, set(8))},
		"a round of nobody":                {0, Message{Kind: State, Number: 1, Round: 4}},
		"a proposal of no coordinator":     {2, Message{Kind: Propose, Number: 1}},
		"a proposal of another agreement":  {0, Message{Kind: Propose, Number: 2}},
		"an acceptance of nothing":         {0, Message{Kind: Accept, Number: 1}},
		"a decision on what was not begun": {0, Message{Kind: Decide, Number: 2}},
	} {
		out, err := m.Handle(c.from, &c.msg, nil)
		if !errors.Is(err, ErrProtocol) || len(out) > 0 {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	if out := handle(t, m, 0, &Message{Kind: Propose, Number: 1, Value: Value{Flags: 1}}); len(out) != 1 || out[0].Message.Kind != Accept {
		t.Errorf("%+v", out)
	}
	if out := handle(t, m, 0, &Message{Kind: Decide, Number: 1, Value: Value{Flags: 1}}); len(out) != 1 || out[0].Do != Decided {
		t.Errorf("%+v", out)
	}
	if _, err := m.Handle(0, &Message{Kind: Decide, Number: 2}, nil); !errors.Is(err, ErrProtocol) {
		t.Errorf("a decision on an agreement that this process has given nothing to: %v", err)
	}
}

// What a process that is down has said counts no more; it is down once.
func TestDown(t *testing.T) {
	m := New(0, 2)
	m.Begin(Contribution{Flags: 5, Acknowledged: set(1)}, nil)
	out := m.Down(1, nil)
	if len(out) != 1 || out[0].Do != Decided || out[0].Value.Flags != 5 || !out[0].Value.Failed.Has(1) || out[0].Value.Unacknowledged != nil {
		t.Errorf("%+v", out)
	}
	if out := append(m.Down(1, nil), m.Down(0, nil)...); len(out) > 0 {
		t.Errorf("%+v", out)
	}
	if out := handle(t, m, 1, state(1, nil)); len(out) > 0 {
		t.Errorf("%+v", out)
	}
	if f := m.Failed(); !f.equal(set(1)) {
		t.Errorf("%v", f)
	}
}

// A process that is out takes part in nothing any more; each Begin has an outcome.
func TestExcluded(t *testing.T) {
	m := New(2, 3)
	m.Begin(Contribution{}, nil)
	m.Begin(Contribution{}, nil)
	out := handle(t, m, 0, &Message{Kind: Decide, Number: 4, Value: Value{Failed: set(2)}})
	out = m.Begin(Contribution{}, out)
	if len(out) != 3 {
		t.Errorf("%+v", out)
	}
	for _, o := range out {
		if o.Do != Excluded {
			t.Errorf("%+v", o)
		}
	}
	if out := handle(t, m, 1, state(1, nil)); len(out) != 1 || out[0].Message.Kind != Decide || out[0].Message.Number != 4 {
		t.Errorf("%+v, want the decision", out)
	}
}

// A value is the AND of the flags of all that are not out, the first context by rank, and who of
// those that are out somebody has not acknowledged. It is decided on once all have accepted it.
func TestValue(t *testing.T) {
	for _, c := range []struct {
		name string
		give [3]Contribution // 3 is down
		want Value
	}{
		{"all acknowledge", [3]Contribution{{Flags: 7, Acknowledged: set(3)}, {Flags: 6, Context: 9, Acknowledged: set(3)},
			{Flags: 14, Context: 4, Acknowledged: set(3)}}, Value{Flags: 6, Context: 9, Failed: set(3)}},
		{"the coordinator does not", [3]Contribution{{Flags: 7, Context: 5, Acknowledged: set(2)}, {Flags: 7, Acknowledged: set(3)},
			{Flags: 7, Acknowledged: set(3)}}, Value{Flags: 7, Context: 5, Failed: set(3), Unacknowledged: set(3)}},
		{"the last does not", [3]Contribution{{Flags: 1, Acknowledged: set(3)}, {Flags: 3, Acknowledged: set(3)},
			{Flags: 1 << 63}}, Value{Failed: set(3), Unacknowledged: set(3)}},
	} {
		m := New(0, 4)
		out := append(m.Begin(c.give[0], nil), m.Down(3, nil)...)
		for k := 1; k < 3; k++ {
			if len(out) > 0 {
				t.Fatalf("%s: %+v, and %d was not heard", c.name, out, k)
			}
			out = handle(t, m, k, &Message{Kind: State, Number: 1, Contribution: c.give[k]})
		}
		if len(out) != 2 || out[0].To != 1 || out[1].To != 2 || out[0].Message.Kind != Propose || !out[0].Message.Value.equal(&c.want) {
			t.Fatalf("%s: proposes %+v, want %+v", c.name, out, c.want)
		}
		accept := &Message{Kind: Accept, Number: 1}
		if out := handle(t, m, 2, accept); len(out) > 0 {
			t.Errorf("%s: one has accepted, and %+v", c.name, out)
		}
		if _, err := m.Handle(2, accept, nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: accepted twice: %v", c.name, err)
		}
		out = handle(t, m, 1, accept)
		if len(out) != 3 || out[0].Message.Kind != Decide || out[1].Message.Kind != Decide || out[2].Do != Decided || !out[2].Value.equal(&c.want) {
			t.Errorf("%s: decides %+v", c.name, out)
		}
	}
}

// Who is down to one that is out itself may live: it is waited for.
func TestCoordinator_WaitsForWhomOthersOutFoundDown(t *testing.T) {
	m := New(0, 4)
	m.Begin(Contribution{Flags: 7}, nil)
	out := append(handle(t, m, 1, state(7, set(2))), handle(t, m, 2, state(7, set(3)))...)
	if len(out) > 0 {
		t.Fatalf("%+v, and 3 was not heard", out)
	}
	out = handle(t, m, 3, state(6, nil))
	if len(out) == 0 || out[0].Message.Kind != Propose || !out[0].Message.Value.Failed.equal(set(2)) || out[0].Message.Value.Flags != 6 {
		t.Errorf("%+v, want 2 to be out", out)
	}
}

// What comes of an agreement that is decided is answered by the decision, if it asks for one.
func TestHandle_OfTheLastAgreement(t *testing.T) {
	m := New(1, 3)
	m.Begin(Contribution{Flags: 1}, nil)
	handle(t, m, 0, &Message{Kind: Decide, Number: 1, Value: Value{Flags: 8}})
	for _, running := range []bool{false, true} {
		for kind, want := range map[Kind]int{State: 1, Propose: 1, Accept: 0, Decide: 0} {
			out := handle(t, m, 2, &Message{Kind: kind, Number: 1, Value: Value{Flags: 9}})
			if len(out) != want {
				t.Errorf("running %t, kind %d: %+v", running, kind, out)
			}
			for _, o := range out {
				if o.Do != Send || o.To != 2 || o.Message.Kind != Decide || o.Message.Number != 1 || o.Message.Value.Flags != 8 {
					t.Errorf("running %t, kind %d: %+v", running, kind, o)
				}
			}
		}
		m.Begin(Contribution{Flags: 2}, nil)
	}
}

// What was proposed last is proposed again, whatever was given, also if the last rank has proposed
// it.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		rounds [4]uint32 // of ranks 1 to 3; 0: nothing was proposed
		want   uint64
	}{
		{[4]uint32{}, 1}, {[4]uint32{0, 2, 0, 0}, 102}, {[4]uint32{0, 0, 4, 0}, 104}, {[4]uint32{0, 2, 4, 3}, 104}, {[4]uint32{0, 4, 2, 0}, 104},
	} {
		m := New(0, 4)
		out := m.Begin(Contribution{Flags: 1}, nil)
		for k := 1; k < 4; k++ {
			msg := state(3, nil)
			if msg.Round = c.rounds[k]; msg.Round > 0 {
				msg.Value.Flags = 100 + uint64(msg.Round)
			}
			out = handle(t, m, k, msg)
		}
		if len(out) != 3 || out[2].Message.Kind != Propose || out[2].Message.Value.Flags != c.want {
			t.Errorf("rounds %v: %+v, want %d", c.rounds, out, c.want)
		}
	}
}

// A member that has accepted tells the next coordinator what, and of whom; the new one asks all for
// theirs.
func TestPresent(t *testing.T) {
	m := New(2, 4)
	if out := m.Begin(Contribution{Flags: 5}, nil); len(out) != 1 || out[0].To != 0 || out[0].Message.Kind != State || out[0].Message.Round != 0 {
		t.Fatalf("%+v", out)
	}
	handle(t, m, 0, &Message{Kind: Propose, Number: 1, Value: Value{Flags: 4}})
	out := m.Down(0, nil)
	if len(out) != 1 || out[0].To != 1 {
		t.Fatalf("%+v, want it for 1 alone", out)
	}
	if s := out[0].Message; s.Kind != State || s.Round != 1 || s.Value.Flags != 4 || !s.Contribution.Down.equal(set(0)) || s.Contribution.Flags != 5 {
		t.Errorf("%+v", s)
	}
	out = m.Down(1, nil) // it is the coordinator itself now
	if len(out) != 1 || out[0].To != 3 || out[0].Message.Kind != State || !out[0].Message.Contribution.Down.equal(set(0, 1)) {
		t.Errorf("%+v", out)
	}
	out = handle(t, m, 3, state(1, nil))
	if len(out) != 1 || out[0].To != 3 || out[0].Message.Kind != Propose || out[0].Message.Value.Flags != 4 {
		t.Errorf("%+v, want what was proposed before", out)
	}
}
