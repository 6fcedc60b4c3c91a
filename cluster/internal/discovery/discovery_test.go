package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

func mac(node, nic int) transport.MAC {
	return transport.MAC{2, 0, 0, byte(nic), byte(node >> 8), byte(node)}
}

func station(node, nics int) Station {
	s := Station{Node: uint16(node), Name: fmt.Sprintf("host%d", node)}
	for nic := range nics {
		s.MACs = append(s.MACs, mac(node, nic))
	}
	return s
}

// announce is what a node on one network says.
func announce(s Station, size int, seeking bool) *Announcement {
	return &Announcement{Seeking: seeking, Size: uint16(size), MACs: s.MACs, Name: s.Name}
}

func TestAnnouncementBytes(t *testing.T) {
	a := Announcement{Seeking: true, Size: 0x0102, NIC: 1, MACs: []transport.MAC{mac(1, 0), mac(1, 1)}, Name: "ab"}
	want := []byte{1, 1, 2, 1, 1, 2, 2, 2, 0, 0, 0, 0, 1, 2, 0, 0, 1, 0, 1, 'a', 'b'}
	got := a.Append(nil)
	if !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	back, err := Parse(append(want, 0, 0, 0)) // padded
	if err != nil || !reflect.DeepEqual(back, a) {
		t.Errorf("%+v, %v", back, err)
	}
	a.Place = Place{Host: 0x0102030405060708, Cores: 0x8000000000000001, Usable: 0x0203, Path: transport.InProcess}
	want = append(want, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 2, 0)
	want[1] = 3
	if got := a.Append(nil); !slices.Equal(got, want) {
		t.Errorf("with a place: got %x, want %x", got, want)
	}
	if back, err := Parse(append(want, 0, 0, 0)); err != nil || !reflect.DeepEqual(back, a) {
		t.Errorf("with a place: %+v, %v", back, err)
	}
}

// A known node that seeks has begun anew, perhaps elsewhere; one that does not is not asked.
func TestPlaces(t *testing.T) {
	now := monotime.At(time.Second)
	m := New(now, station(0, 1), 2, 1)
	hear := func(seeking bool, host uint64, moves int) {
		t.Helper()
		a := announce(station(1, 1), 2, seeking)
		a.Place.Host = host
		now = now.Add(time.Second)
		m.Handle(now, 1, mac(1, 0), 0, a, nil)
		m.Advance(now, nil)
		if m.Moves() != moves {
			t.Errorf("host %d, seeking %v: %d moves, want %d", host, seeking, m.Moves(), moves)
		}
	}
	hear(true, 7, 0)
	hear(true, 7, 0)
	hear(false, 8, 0)
	if got := m.Heard()[0].Place.Host; got != 7 {
		t.Errorf("host %d, want 7", got)
	}
	hear(true, 9, 1)
	hear(true, 0, 2)
	if got := m.Heard()[0].Place; got != (Place{}) || m.State() != Complete {
		t.Errorf("%+v, %v", got, m.State())
	}
}

// What is read is what was written, to the limits, and what is beyond them is malformed.
func TestParse_Limits(t *testing.T) {
	for _, c := range []struct {
		name   string
		a      Announcement
		change func(b []byte) []byte // nil: none
		ok     bool
	}{
		{"seeking", Announcement{Seeking: true, Size: 3, MACs: station(1, 2).MACs, NIC: 1}, nil, true},
		{"not seeking", Announcement{Size: 3, MACs: station(1, 2).MACs}, nil, true},
		{"the largest", Announcement{Size: 0xffff, NIC: 15, MACs: station(1, 16).MACs, Name: strings.Repeat("n", 63)},
			nil, true},
		{"padded", Announcement{Size: 2, MACs: station(1, 1).MACs, Name: "n"}, func(b []byte) []byte { return append(b, 0, 1) }, true},
		{"other flags", Announcement{Size: 2, MACs: station(1, 1).MACs}, func(b []byte) []byte { b[1] = 0xfc; return b }, true},
		{"with a place", Announcement{Size: 2, MACs: station(1, 1).MACs, Name: "n", Place: Place{Host: 1 << 63, Cores: 3, Usable: 2, Path: 1}},
			nil, true},
		{"a place of no host", Announcement{Size: 2, MACs: station(1, 1).MACs},
			func(b []byte) []byte { b[1] = flagPlace; return append(b, make([]byte, placeLen)...) }, false},
		{"a place cut off", Announcement{Size: 2, MACs: station(1, 1).MACs, Place: Place{Host: 1}},
			func(b []byte) []byte { return b[:len(b)-1] }, false},
		{"no networks", Announcement{Size: 3}, nil, false},
		{"a network too many", Announcement{Size: 3, MACs: station(1, 17).MACs}, nil, false},
		{"by a network that it does not have", Announcement{Size: 3, NIC: 2, MACs: station(1, 2).MACs}, nil, false},
		{"another version", Announcement{Size: 2, MACs: station(1, 1).MACs}, func(b []byte) []byte { b[0]++; return b }, false},
		{"a name too long", Announcement{Size: 2, MACs: station(1, 1).MACs, Name: strings.Repeat("n", 63)},
			func(b []byte) []byte { b[6]++; return append(b, 'n') }, false},
		{"a byte short", Announcement{Size: 2, MACs: station(1, 1).MACs, Name: "n"}, func(b []byte) []byte { return b[:len(b)-1] }, false},
		{"a head less one byte", Announcement{Size: 2, MACs: station(1, 1).MACs}, func(b []byte) []byte { return b[:6] }, false},
		{"a head alone", Announcement{Size: 2, MACs: station(1, 1).MACs}, func(b []byte) []byte { return b[:7] }, false},
		{"a zero address", Announcement{Size: 2, MACs: []transport.MAC{mac(1, 0), {}}}, nil, false},
		{"a group's address", Announcement{Size: 2, MACs: []transport.MAC{{3, 1}, mac(1, 0)}}, nil, false},
	} {
		b := c.a.Append(nil)
		if c.change != nil {
			b = c.change(b)
		}
		back, err := Parse(b)
		if c.ok && (err != nil || !reflect.DeepEqual(back, c.a)) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, back, err, c.a)
		}
		if !c.ok && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v; want ErrMalformed", c.name, back, err)
		}
	}
}

// Names end in error messages, on terminals.
func TestNames(t *testing.T) {
	for _, c := range []struct{ name, sent, want string }{
		{"printable", "höst-1", "höst-1"},
		{"an escape sequence", "a\x1b[2Jb", "a?[2Jb"},
		{"lines", "a\nb\r", "a?b?"},
		{"not UTF-8", "a\xffb", "a?b"},
		{"as long as may be", strings.Repeat("a", MaxName), strings.Repeat("a", MaxName)},
		{"too long", strings.Repeat("a", MaxName+1), strings.Repeat("a", MaxName)},
		{"too long, and no character begins", strings.Repeat("\x80", MaxName+1), ""},
		{"too long, and would be cut within a character", strings.Repeat("a", MaxName-1) + "ö", strings.Repeat("a", MaxName-1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Announcement{Size: 1, MACs: station(0, 1).MACs, Name: c.sent}
			if back, err := Parse(a.Append(nil)); err != nil || back.Name != c.want {
				t.Errorf("%q, %v; want %q", back.Name, err, c.want)
			}
		})
	}
}

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
			if len(out) != 1 || m.State() != Failed || m.Fault().Kind != SameNumber {
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
		{"more networks", OtherNetwork, 2, station(2, 2), 3},
	} {
		t.Run("Seeking, "+c.name+": fails, and lets the other know", func(t *testing.T) {
			m := start()
			m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil)
			out := m.Handle(now, c.node, c.s.MACs[0], 0, announce(c.s, c.size, true), nil)
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
	}{
		{"another size", OtherSize, 2, 4},
		{"a number out of range", OutOfRange, 3, 3},
	} {
		const sure, suspected = 500 * time.Millisecond, 2 * time.Second
		hear := func(m *Discovery, at time.Duration) []Send {
			return m.Handle(now.Add(at), uint16(c.node), mac(c.node, 0), 0, announce(station(c.node, 1), c.size, true), nil)
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

// Some networks give a node its own frames back.
func TestOwnAnnouncementComesBack(t *testing.T) {
	m := New(monotime.At(0), station(0, 1), 2, 1)
	if out := m.Handle(monotime.At(1), 0, mac(0, 0), 0, announce(station(0, 1), 2, true), nil); len(out) != 0 || m.State() != Seeking {
		t.Errorf("%v %+v", m.State(), out)
	}
}

// What is read can be written and read again, and is the same; if the name is printable, byte by byte.
func FuzzParse(f *testing.F) {
	for _, v := range fuzzseed.Variants(announce(station(1, 2), 3, true).Append(nil)) {
		f.Add(v)
	}
	placed := announce(station(1, 2), 3, true)
	placed.Place = Place{Host: 5, Cores: 3, Usable: 2, Path: 1}
	for _, v := range fuzzseed.Variants(placed.Append(nil)) {
		f.Add(v)
	}
	for _, name := range []string{"a\x1b\xff", strings.Repeat("a", MaxName-1) + "ö", strings.Repeat("a", 2*MaxName)} {
		f.Add((&Announcement{Size: 1, MACs: station(0, 1).MACs, Name: name}).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b)
		if err != nil {
			return
		}
		again := a.Append(nil)
		back, err := Parse(again)
		if err != nil || !reflect.DeepEqual(back, a) {
			t.Fatalf("%+v became %+v, %v", a, back, err)
		}
		end := len(b)
		if a.Place.Host != 0 {
			end-- // a byte that is not looked at
		}
		if bytes.HasSuffix(b, []byte(a.Name)) && len(again) == len(b) && !slices.Equal(again[2:end], b[2:end]) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

// Bytes are a script: the cluster's size, then node, address, size and, above the lowest bit, the
// milliseconds until the next announcement. The lowest bit says that the node seeks; a size of 128
// more, that it has two networks. Whatever comes, at most one announcement answers each.
func FuzzDiscovery(f *testing.F) {
	const seeks = 1
	met := []byte{3, 1, 1, 3, seeks, 2, 2, 3, seeks, 1, 1, 3, 2*1 | seeks, 1, 1, 3, 2*5 | seeks}
	for _, script := range [][]byte{
		{1, 1, 1, 1, 0},
		{3, 1, 1, 3, 0, 2, 2, 3, 1},
		slices.Concat(met, []byte{1, 1, 3, 2*1 | seeks, 2, 2, 3, seeks, 1, 1, 3, seeks, 2, 2, 3, 2 * 9}), // each is answered
		slices.Concat(met, []byte{0, 9, 3, 2*50 | seeks, 0, 8, 3, seeks, 1, 9, 3, 2*50 | seeks}),         // doubles
		{3, 1, 1, 3, 0, 2, 1, 3, 0}, // one address for two
		{3, 2, 0, 3, 0},             // this node's
		{3, 1, 1, 3, 0, 1, 2, 3, 0}, // one number for two
		{3, 0, 0, 3, 0, 0, 5, 3, 0}, // its own, and a double
		{3, 1, 1, 3 + 128, 0},       // two networks
		bytes.Repeat([]byte{3, 2, 2, 4, 254}, 1),
		append([]byte{3}, bytes.Repeat([]byte{2, 2, 4, 254}, 6)...), // another size, again and again
		append([]byte{3}, bytes.Repeat([]byte{7, 7, 3, 254}, 6)...), // a number out of range
	} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 {
			return
		}
		now, size := monotime.At(time.Second), 1+int(script[0]-1)%4
		m := New(now, station(0, 1), size, 1)
		for script = script[1:]; len(script) >= 4; script = script[4:] {
			now = now.Add(time.Duration(script[3]>>1) * time.Millisecond)
			if out := m.Advance(now, nil); len(out) > 1 {
				t.Fatalf("Advance: %+v", out)
			}
			s := station(int(script[1]), 1+int(script[2]>>7))
			out := m.Handle(now, uint16(script[0]), mac(int(script[1]), 0), 0, announce(s, int(script[2]&127), script[3]&1 != 0), nil)
			if len(out) > 1 {
				t.Fatalf("Handle: %+v", out)
			}
			all := len(m.Missing()) == 0
			if all != (m.State() == Settling || m.State() == Complete) && m.State() != Failed || len(m.Heard()) >= size {
				t.Fatalf("%v, heard %v, missing %v", m.State(), m.Heard(), m.Missing())
			}
			if m.State() == Failed && m.Fault().Kind == NoFault {
				t.Fatal("failed without a fault")
			}
			if at, ok := m.Deadline(); ok != (m.State() == Seeking || m.State() == Settling) || ok && at.After(now.Add(LastInterval*5/4)) {
				t.Fatalf("%v, deadline in %v, %v", m.State(), at.Sub(now), ok)
			}
		}
	})
}
