package discovery

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

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

// A known node that has begun anew, perhaps elsewhere, seeks as a rule. It need not: it may have
// heard all others before it announces itself.
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
	hear(false, 7, 0)
	hear(false, 8, 1)
	if got := m.Heard()[0].Place.Host; got != 8 {
		t.Errorf("host %d, want 8", got)
	}
	hear(true, 9, 2)
	hear(false, 0, 3)
	if got := m.Heard()[0].Place; got != (Place{}) || m.State() != Complete {
		t.Errorf("%+v, %v", got, m.State())
	}
}

// Of a node on another host that has this one's number and address, it is told to the user; on this
// host, or where one of them does not say, it is this node's own announcement that came back.
func TestClones(t *testing.T) {
	for _, c := range []struct {
		own, other uint64
		clone      bool
	}{{7, 8, true}, {7, 7, false}, {7, 0, false}, {0, 7, false}, {0, 0, false}} {
		self := station(0, 1)
		self.Place.Host = c.own
		m := New(monotime.At(0), self, 2, 1)
		a := announce(station(0, 1), 2, true)
		a.Place.Host = c.other
		m.Handle(monotime.At(1), 0, mac(0, 0), 0, a, nil)
		if got := m.State() == Failed && m.Fault().Kind == SameNumber; got != c.clone {
			t.Errorf("hosts %d and %d: clone %v, want %v", c.own, c.other, got, c.clone)
		}
	}
}

// Some networks give a node its own frames back.
func TestOwnAnnouncementComesBack(t *testing.T) {
	m := New(monotime.At(0), station(0, 1), 2, 1)
	if out := m.Handle(monotime.At(1), 0, mac(0, 0), 0, announce(station(0, 1), 2, true), nil); len(out) != 0 || m.State() != Seeking {
		t.Errorf("%v %+v", m.State(), out)
	}
}

// Bytes are a script: the cluster's size, then node, address, size and, above the lowest bit, the
// milliseconds until the next announcement. The lowest bit says that the node seeks; a size of 128
// more, that it has two networks. Whatever comes, at most one announcement answers each.
func FuzzDiscovery(f *testing.F) {
	const seeks, failed = 1, 64
	met := []byte{3, 1, 1, 3, seeks, 2, 2, 3, seeks, 1, 1, 3, 2*1 | seeks, 1, 1, 3, 2*5 | seeks}
	for _, script := range [][]byte{
		{1, 1, 1, 1, 0},
		{3, 1, 1, 3, 0, 2, 2, 3, 1},
		slices.Concat(met, []byte{1, 1, 3, 2*1 | seeks, 2, 2, 3, seeks, 1, 1, 3, seeks, 2, 2, 3, 2 * 9}), // each is answered
		slices.Concat(met, []byte{0, 9, 3, 2*50 | seeks, 0, 8, 3, seeks, 1, 9, 3, 2*50 | seeks}),         // doubles
		{3, 1, 1, 3, 0, 2, 1, 3, 0}, // one address for two
		{3, 2, 0, 3, 0},             // this node's
		{3, 1, 1, 3, 0, 1, 2, 3, 0}, // one number for two
		slices.Concat([]byte{3, 1, 1, 3, seeks, 1, 9, 3, seeks}, bytes.Repeat([]byte{2, 2, 3, 254 | seeks}, 8)), // one that is gone
		{3, 1, 1, 3, seeks, 1, 9, 3, seeks, 1, 1, 3, seeks},                                                     // and that is there
		{3, 1, 1, 3, seeks, 1, 1, 3 | failed, seeks, 1, 1, 3, seeks, 2, 2, 3 | failed, 0},                       // one that has failed, and began anew
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
			a := announce(s, int(script[2]&63), script[3]&seeks != 0)
			a.Failed = script[2]&failed != 0
			out := m.Handle(now, uint16(script[0]), mac(int(script[1]), 0), 0, a, nil)
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
