package discovery

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// The rows of the table in the package's comment.
func TestStates(t *testing.T) {
	now := monotime.At(time.Second)
	start := func() *Discovery {
		m := New(now, station(0, 1), 3, 1)
		if out := m.Advance(now, nil); len(out) != 1 || !out[0].Announcement.Seeking {
			t.Fatalf("first: %+v", out)
		}
		return m
	}
	t.Run("Seeking, deadline: announces, ever more rarely", func(t *testing.T) {
		m, now := start(), now
		for i := range 20 {
			at, ok := m.Deadline()
			want := min(5*time.Millisecond<<i, 250*time.Millisecond)
			if d := at.Sub(now); !ok || d < want || d > want*5/4 {
				t.Fatalf("round %d: deadline in %v, %v; want %v and up to a quarter", i, d, ok, want)
			}
			if out := m.Advance(at.Add(-1), nil); len(out) != 0 {
				t.Fatal("announced before the deadline")
			}
			if out := m.Advance(at, nil); len(out) != 1 {
				t.Fatal("silent at the deadline")
			}
			now = at
		}
	})
	t.Run("Seeking, deadlines: in the end a quarter of a second apart, and up to a quarter of that more", func(t *testing.T) {
		m, now := start(), now
		least, most := time.Hour, time.Duration(0)
		for i := range 2000 {
			at, _ := m.Deadline()
			if d := at.Sub(now); i > 10 {
				least, most = min(least, d), max(most, d)
			}
			m.Advance(at, nil)
			now = at
		}
		const ms = time.Millisecond
		if least < 250*ms || least > 250*ms+ms/2 || most < 312*ms || most > 312*ms+ms/2 {
			t.Errorf("%v to %v apart", least, most)
		}
	})
	// soon checks that a node that has announced at now says one thing more, AnswerInterval later.
	soon := func(t *testing.T, m *Discovery, seeking bool) {
		t.Helper()
		at, ok := m.Deadline()
		if !ok || at != now.Add(AnswerInterval) {
			t.Fatalf("deadline in %v, %v; want %v", at.Sub(now), ok, AnswerInterval)
		}
		if out := m.Advance(at.Add(-1), nil); len(out) != 0 {
			t.Errorf("too soon: %+v", out)
		}
		if out := m.Advance(at, nil); len(out) != 1 || out[0].Announcement.Seeking != seeking {
			t.Errorf("soon: %+v, want one announcement, seeking %v", out, seeking)
		}
		if next, ok := m.Deadline(); !ok || !next.After(at) {
			t.Errorf("said, and the deadline is in %v, %v", next.Sub(now), ok)
		}
	}
	t.Run("Seeking, somebody new: says so soon", func(t *testing.T) {
		m := start()
		out := m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil)
		if len(out) != 0 || m.State() != Seeking || !slices.Equal(m.Missing(), []uint16{2}) {
			t.Errorf("%v %+v missing %v", m.State(), out, m.Missing())
		}
		soon(t, m, true)
		if out := m.Handle(now.Add(2*AnswerInterval), 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil); len(out) != 0 {
			t.Errorf("known, and answered: %+v", out)
		}
	})
	t.Run("Seeking, somebody new AnswerInterval after the last announcement: says so at once", func(t *testing.T) {
		m := start()
		out := m.Handle(now.Add(AnswerInterval), 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil)
		if len(out) != 1 || !out[0].Announcement.Seeking {
			t.Errorf("%+v", out)
		}
	})
	settling := func(t *testing.T) *Discovery {
		t.Helper()
		m := start()
		for _, k := range []int{1, 2} {
			if out := m.Handle(now, uint16(k), mac(k, 0), 0, announce(station(k, 1), 3, true), nil); len(out) != 0 {
				t.Fatalf("node %d, at the instant of an announcement: %+v", k, out)
			}
		}
		if m.State() != Settling || len(m.Missing()) != 0 {
			t.Fatalf("the last: %v, missing %v", m.State(), m.Missing())
		}
		return m
	}
	t.Run("Seeking, the last of the others: answers all by one announcement", func(t *testing.T) {
		soon(t, settling(t), false)
	})
	t.Run("Seeking, the last of the others before a word was said: says it twice", func(t *testing.T) {
		m := New(now, station(0, 1), 2, 1)
		out := m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 2, false), nil)
		if len(out) != 1 || m.State() != Settling {
			t.Fatalf("%v %+v", m.State(), out)
		}
		soon(t, m, false)
	})
	t.Run("Settling, seeking: answers soon", func(t *testing.T) {
		m := settling(t)
		m.Advance(now.Add(AnswerInterval), nil)
		at := now.Add(AnswerInterval * 3 / 2)
		if out := m.Handle(at, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil); len(out) != 0 {
			t.Errorf("answered twice within AnswerInterval: %+v", out)
		}
		if out := m.Advance(now.Add(2*AnswerInterval), nil); len(out) != 1 || out[0].Announcement.Seeking {
			t.Errorf("%+v", out)
		}
		if out := m.Handle(now.Add(4*AnswerInterval), 1, mac(1, 0), 0, announce(station(1, 1), 3, false), nil); len(out) != 0 {
			t.Errorf("answered one who does not ask: %+v", out)
		}
	})
	t.Run("Settling, SettleInterval is over: met", func(t *testing.T) {
		m := settling(t)
		m.Advance(now.Add(AnswerInterval), nil)
		at, ok := m.Deadline()
		if !ok || at != now.Add(5*time.Millisecond) {
			t.Fatalf("deadline in %v, %v", at.Sub(now), ok)
		}
		if m.Advance(at.Add(-1), nil); m.State() != Settling {
			t.Errorf("%v too early", m.State())
		}
		if out := m.Advance(at, nil); len(out) != 0 || m.State() != Complete {
			t.Errorf("%v %+v", m.State(), out)
		}
		if _, ok := m.Deadline(); ok {
			t.Error("met, and has a deadline")
		}
	})
	t.Run("Settling, SettleInterval is over before anybody looked: says what is to be said, and has met", func(t *testing.T) {
		m := settling(t)
		if out := m.Advance(now.Add(time.Second), nil); len(out) != 1 || m.State() != Complete {
			t.Errorf("%v %+v", m.State(), out)
		}
	})
	met := func(t *testing.T) *Discovery {
		t.Helper()
		m := settling(t)
		m.Advance(now.Add(AnswerInterval), nil)
		m.Advance(now.Add(SettleInterval), nil)
		return m
	}
	t.Run("Complete, seeking: answers, but not more often than AnswerInterval", func(t *testing.T) {
		m, at := met(t), now.Add(2*SettleInterval)
		ask := announce(station(1, 1), 3, true)
		if out := m.Handle(at, 1, mac(1, 0), 0, ask, nil); len(out) != 1 || out[0].Announcement.Seeking {
			t.Errorf("%+v", out)
		}
		if out := m.Handle(at.Add(AnswerInterval-1), 1, mac(1, 0), 0, ask, nil); len(out) != 0 {
			t.Error("answered twice within AnswerInterval")
		}
		if _, ok := m.Deadline(); ok {
			t.Error("met, and has a deadline")
		}
		if out := m.Handle(at.Add(AnswerInterval), 1, mac(1, 0), 0, ask, nil); len(out) != 1 {
			t.Errorf("%+v", out)
		}
		if out := m.Handle(at.Add(time.Second), 1, mac(1, 0), 0, announce(station(1, 1), 3, false), nil); len(out) != 0 {
			t.Error("answered one who does not ask")
		}
	})
	t.Run("Complete, a conflict: goes on, and lets the newcomer know if it claims this node's place", func(t *testing.T) {
		for claimed, want := range map[uint16]int{0: 1, 1: 0} {
			m := met(t)
			other := Station{Node: claimed, MACs: []transport.MAC{mac(9, 0)}}
			out := m.Handle(now.Add(time.Second), claimed, mac(9, 0), 0, announce(other, 3, true), nil)
			if len(out) != want || m.State() != Complete || m.Fault().Kind != SameNumber {
				t.Errorf("node %d claimed: %v %+v %+v", claimed, m.State(), m.Fault(), out)
			}
		}
	})
	t.Run("Settling, a conflict: fails, and lets the other know", func(t *testing.T) {
		for _, claimed := range []uint16{0, 1} {
			m := settling(t)
			other := Station{Node: claimed, MACs: []transport.MAC{mac(9, 0)}}
			out := m.Handle(now, claimed, mac(9, 0), 0, announce(other, 3, false), nil)
			if claimed == 1 { // node 1 may have begun anew; but it is there
				if len(out) != 0 || m.State() != Seeking || !slices.Equal(m.Missing(), []uint16{1}) {
					t.Errorf("node 1 claimed: %v %+v, missing %v", m.State(), out, m.Missing())
				}
				out = m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil)
			}
			if len(out) != 1 || !out[0].Announcement.Failed || m.State() != Failed || m.Fault().Kind != SameNumber {
				t.Errorf("node %d claimed: %v %+v %+v", claimed, m.State(), m.Fault(), out)
			}
			if _, ok := m.Deadline(); ok {
				t.Error("failed, and has a deadline")
			}
		}
	})
	for _, c := range []struct {
		name string
		kind FaultKind
		node uint16
		s    Station
		size int
	}{
		{"this node's number", SameNumber, 0, station(7, 1), 3},
		{"this node's address", SameAddress, 2, station(0, 1), 3},
		{"another's number", SameNumber, 1, station(8, 1), 3},
		{"another's address", SameAddress, 2, station(1, 1), 3},
		{"networks in another order", OtherNetwork, 2, station(2, 1), 3},
	} {
		t.Run("Seeking, "+c.name+": fails, and lets the other know", func(t *testing.T) {
			m := start()
			m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil)
			nic := 0
			if c.kind == OtherNetwork {
				nic = 1 // of what was sent by network 0
			}
			out := m.Handle(now, c.node, c.s.MACs[0], nic, announce(c.s, c.size, true), nil)
			if c.node == 1 { // it may have begun anew; but it is there
				out = m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil)
			}
			if m.State() != Failed || m.Fault().Kind != c.kind || len(out) != 1 || m.Fault().B.Node != c.node {
				t.Errorf("%v, %+v, %+v", m.State(), m.Fault(), out)
			}
			if out := m.Handle(now, 2, mac(2, 0), 0, announce(station(2, 1), 3, true), nil); len(out) != 0 {
				t.Error("failed, and answers")
			}
		})
	}
	for _, c := range []struct {
		name string
		kind FaultKind
		node int
		size int
		nics int
	}{
		{"another size", OtherSize, 2, 4, 1},
		{"a number out of range", OutOfRange, 3, 3, 1},
		{"more networks", OtherNetwork, 2, 3, 2},
	} {
		const sure, suspected = 500 * time.Millisecond, 2 * time.Second
		hear := func(m *Discovery, at time.Duration) []Send {
			return m.Handle(now.Add(at), uint16(c.node), mac(c.node, 0), 0, announce(station(c.node, c.nics), c.size, true), nil)
		}
		t.Run("Seeking, "+c.name+", once or in a burst: goes on", func(t *testing.T) {
			m := start()
			for range 10 {
				if out := hear(m, sure-1); len(out) != 0 || m.State() != Seeking {
					t.Fatalf("%v, %+v", m.State(), out)
				}
			}
			m = start()
			for _, at := range []time.Duration{0, sure - 1, sure - 1, sure - 1} {
				if out := hear(m, at); len(out) != 0 || m.State() != Seeking {
					t.Fatalf("%v, %+v", m.State(), out)
				}
			}
			m = start()
			hear(m, 0)
			if hear(m, time.Hour); m.State() != Seeking || m.Fault().Kind != c.kind {
				t.Errorf("twice: %v, %+v; want the fault noted", m.State(), m.Fault())
			}
		})
		t.Run("Seeking, "+c.name+", now and then: goes on", func(t *testing.T) {
			m := start()
			for i := range 10 {
				if out := hear(m, time.Duration(i)*suspected); len(out) != 0 || m.State() != Seeking {
					t.Fatalf("heard %d times: %v, %+v", i+1, m.State(), out)
				}
			}
			hear(m, 10*suspected-1)
			if hear(m, 11*suspected-2); m.State() != Failed || m.Fault().Kind != c.kind {
				t.Errorf("%v, %+v; want the end, as it goes on saying so", m.State(), m.Fault())
			}
		})
		t.Run("Seeking, "+c.name+", again and again: fails, and lets the other know", func(t *testing.T) {
			m := start()
			hear(m, 0)
			hear(m, sure/2)
			if out := hear(m, sure); m.State() != Failed || m.Fault().Kind != c.kind || len(out) != 1 || int(m.Fault().B.Node) != c.node {
				t.Errorf("%v, %+v, %+v", m.State(), m.Fault(), out)
			}
		})
	}
	t.Run("Seeking, another size and then the right one: begins anew", func(t *testing.T) {
		m := start()
		for i, size := range []int{4, 4, 3, 4} {
			m.Handle(now.Add(time.Duration(i)*time.Second), 2, mac(2, 0), 0, announce(station(2, 1), size, true), nil)
		}
		if m.State() == Failed {
			t.Errorf("%+v", m.Fault())
		}
	})
	t.Run("Complete, several seek: each is answered, alone", func(t *testing.T) {
		m, at := met(t), now.Add(2*SettleInterval)
		for k := 1; k <= 2; k++ {
			out := m.Handle(at, uint16(k), mac(k, 0), 0, announce(station(k, 1), 3, true), nil)
			if len(out) != 1 || !out[0].One || int(out[0].To.Node) != k || !slices.Equal(out[0].To.MACs, []transport.MAC{mac(k, 0)}) {
				t.Errorf("node %d: %+v", k, out)
			}
		}
	})
	t.Run("any, an announcement from an address that it does not tell of: ignored", func(t *testing.T) {
		m := start()
		if out := m.Handle(now, 1, mac(5, 0), 0, announce(station(1, 1), 3, true), nil); len(out) != 0 || len(m.Heard()) != 0 {
			t.Errorf("%+v", out)
		}
	})
}
