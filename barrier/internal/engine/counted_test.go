package engine

import "testing"

// A unit may count as long as all take part: not once a member has said goodbye, or this one, or a member
// is asked for, or gone.
func TestIntact(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(a *alone)
		want bool
	}{
		{"nothing has happened", func(*alone) {}, true},
		{"it waits", func(a *alone) { a.arrives(0) }, true},
		{"a member has left", func(a *alone) { a.hears(1, a.from(1, Bye, 0, 0)) }, false},
		{"it leaves itself", func(a *alone) { a.Leave(nil) }, false},
		{"a member is asked for", func(a *alone) { a.Accuse(a.now, 1, Silent) }, false},
		{"a member is gone", func(a *alone) { a.hears(1, a.decided(1, Silent, 2)) }, false},
	} {
		a := newAlone(t, "star", 0, 3)
		if c.do(a); a.Intact() != c.want {
			t.Errorf("%s: it is intact: %t, want %t", c.name, a.Intact(), c.want)
		}
	}
}

// A unit counts what the schedule awaits from a member as it is known here, and nothing else.
func TestCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m *Message)
		want   bool
	}{
		{"an awaited notify", func(*Message) {}, true},
		{"another kind", func(m *Message) { m.Kind = Nack }, false},
		{"another group", func(m *Message) { m.Identity.Hash++ }, false},
		{"another algorithm", func(m *Message) { m.Algorithm++ }, false},
		{"a member that has begun anew", func(m *Message) { m.Incarnation++ }, false},
		{"for this member before it began anew", func(m *Message) { m.Echo = 77 }, false},
		{"a label that is not awaited", func(m *Message) { m.Label = 9 }, false},
	} {
		a := newAlone(t, "star", 0, 3)
		a.notify(1, 1, 0) // 1 is known
		m := a.from(1, Notify, 1, 0)
		if c.change(&m); a.Counts(1, &m) != c.want {
			t.Errorf("%s: it counts: %t, want %t", c.name, !c.want, c.want)
		}
	}
}

// A member awaits a notify of those before it in the schedule, and of no others.
func TestAwaited(t *testing.T) {
	a := newAlone(t, "star", 1, 3)
	for from, want := range []bool{true, false, false} {
		if _, ok := a.Awaited(from); ok != want {
			t.Errorf("it awaits one of %d: %t, want %t", from, ok, want)
		}
	}
}
