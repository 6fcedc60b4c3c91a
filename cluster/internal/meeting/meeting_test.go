package meeting

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/mono"
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
}

// The rows of the table in the package's comment.
func TestStates(t *testing.T) {
	now := mono.At(time.Second)
	start := func() *Meeting {
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
			want := min(FirstInterval<<i, LastInterval)
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
	t.Run("Seeking, somebody new: says so at once", func(t *testing.T) {
		m := start()
		out := m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil)
		if len(out) != 1 || !out[0].Announcement.Seeking || m.State() != Seeking || !slices.Equal(m.Missing(), []uint16{2}) {
			t.Errorf("%v %+v missing %v", m.State(), out, m.Missing())
		}
		if out := m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil); len(out) != 0 {
			t.Errorf("known, and answered: %+v", out)
		}
	})
	met := func() *Meeting {
		m := start()
		m.Handle(now, 1, mac(1, 0), 0, announce(station(1, 1), 3, true), nil)
		out := m.Handle(now, 2, mac(2, 0), 0, announce(station(2, 1), 3, true), nil)
		if len(out) != 1 || out[0].Announcement.Seeking || m.State() != Met {
			t.Fatalf("the last: %v %+v", m.State(), out)
		}
		if _, ok := m.Deadline(); ok {
			t.Fatal("met, and has a deadline")
		}
		return m
	}
	t.Run("Met, seeking: answers, but not more often than AnswerInterval", func(t *testing.T) {
		m := met()
		ask := announce(station(1, 1), 3, true)
		if out := m.Handle(now, 1, mac(1, 0), 0, ask, nil); len(out) != 0 {
			t.Error("answered twice at one instant")
		}
		if out := m.Handle(now.Add(AnswerInterval), 1, mac(1, 0), 0, ask, nil); len(out) != 1 || out[0].Announcement.Seeking {
			t.Errorf("%+v", out)
		}
		if out := m.Handle(now.Add(time.Second), 1, mac(1, 0), 0, announce(station(1, 1), 3, false), nil); len(out) != 0 {
			t.Error("answered one who does not ask")
		}
	})
	t.Run("Met, a conflict: goes on, and lets the newcomer know if it claims this node's place", func(t *testing.T) {
		for claimed, want := range map[uint16]int{0: 1, 1: 0} {
			m := met()
			other := Station{Node: claimed, MACs: []transport.MAC{mac(9, 0)}}
			out := m.Handle(now.Add(time.Second), claimed, mac(9, 0), 0, announce(other, 3, true), nil)
			if len(out) != want || m.State() != Met {
				t.Errorf("node %d claimed: %v %+v", claimed, m.State(), out)
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
		{"another size", OtherSize, 2, station(2, 1), 4},
		{"a number out of range", OutOfRange, 3, station(3, 1), 3},
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
	t.Run("any, an announcement from an address that it does not tell of: ignored", func(t *testing.T) {
		m := start()
		if out := m.Handle(now, 1, mac(5, 0), 0, announce(station(1, 1), 3, true), nil); len(out) != 0 || len(m.Heard()) != 0 {
			t.Errorf("%+v", out)
		}
	})
}

// Some networks give a node its own frames back.
func TestOwnAnnouncementComesBack(t *testing.T) {
	m := New(mono.At(0), station(0, 1), 2, 1)
	if out := m.Handle(mono.At(1), 0, mac(0, 0), 0, announce(station(0, 1), 2, true), nil); len(out) != 0 || m.State() != Seeking {
		t.Errorf("%v %+v", m.State(), out)
	}
}

// Nodes that start at any time within a second and lose a third of all announcements meet, and soon.
func TestMeetsInSpiteOfLoss(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		size := 2 + rng.IntN(8)
		nodes := make([]*Meeting, size)
		begin := make([]mono.Time, size)
		for k := range nodes {
			begin[k] = mono.At(time.Duration(rng.Int64N(int64(time.Second))))
		}
		now := mono.At(0)
		for ; ; now = now.Add(time.Millisecond) {
			if now.Since() > 20*time.Second {
				t.Fatalf("seed %d: not met after %v", seed, now)
			}
			all := true
			for k := range nodes {
				if now.Before(begin[k]) {
					all = false
					continue
				}
				if nodes[k] == nil {
					nodes[k] = New(now, station(k, 1), size, uint64(k))
				}
				broadcast(rng, now, nodes, k, nodes[k].Advance(now, nil), 0)
				all = all && nodes[k].State() == Met
			}
			if all {
				break
			}
		}
	}
}

// broadcast delivers what node k says to those who are there, answers included.
func broadcast(rng *rand.Rand, now mono.Time, nodes []*Meeting, k int, out []Send, depth int) {
	for _, s := range out {
		for j, m := range nodes {
			if j == k || m == nil || rng.IntN(3) == 0 {
				continue
			}
			answer := m.Handle(now, uint16(k), mac(k, 0), 0, &s.Announcement, nil)
			if depth < 10 {
				broadcast(rng, now, nodes, j, answer, depth+1)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(announce(station(1, 2), 3, true).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b)
		if err != nil {
			return
		}
		if again := a.Append(nil); !slices.Equal(again[2:], b[2:len(again)]) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

// Bytes are a script: node, address, announcement. Whatever comes, at most one announcement answers each.
func FuzzMeeting(f *testing.F) {
	f.Add([]byte{1, 1, 3, 0, 2, 2, 3, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		now := mono.At(time.Second)
		m := New(now, station(0, 1), 3, 1)
		for ; len(script) >= 4; script = script[4:] {
			now = now.Add(time.Duration(script[3]>>1) * time.Millisecond)
			if out := m.Advance(now, nil); len(out) > 1 {
				t.Fatalf("Advance: %+v", out)
			}
			s := station(int(script[1]), 1)
			out := m.Handle(now, uint16(script[0]), mac(int(script[1]), 0), 0, announce(s, int(script[2]), script[3]&1 != 0), nil)
			if len(out) > 1 {
				t.Fatalf("Handle: %+v", out)
			}
			if m.State() == Met && len(m.Missing()) != 0 || m.State() == Seeking && len(m.Missing()) == 0 || len(m.Heard()) > 2 {
				t.Fatalf("%v, heard %v, missing %v", m.State(), m.Heard(), m.Missing())
			}
		}
	})
}
