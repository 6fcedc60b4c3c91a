package discovery

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// A fault names both stations: the one of this cluster whose place is claimed, or this node, and the
// one that was heard, with the network and the size of its cluster.
func TestFault_Names(t *testing.T) {
	now := monotime.At(time.Second)
	self, other := station(0, 2), station(1, 2)
	for _, c := range []struct {
		name string
		kind FaultKind
		a    Station
		s    Station // that is heard
		size int
		said int // the network that it says it sends by
		nic  int // the one by which it is heard
	}{
		{"this node's number", SameNumber, self, Station{Node: 0, MACs: station(7, 2).MACs}, 3, 0, 0},
		{"another's number", SameNumber, other, Station{Node: 1, MACs: station(7, 2).MACs}, 3, 1, 1},
		{"this node's address", SameAddress, self, Station{Node: 2, MACs: []transport.MAC{mac(2, 0), mac(0, 1)}}, 3, 0, 0},
		{"another's address", SameAddress, other, Station{Node: 2, MACs: []transport.MAC{mac(2, 0), mac(1, 1)}}, 3, 0, 0},
		{"another size", OtherSize, self, station(2, 2), 4, 0, 0},
		{"a number out of range", OutOfRange, self, station(3, 2), 3, 1, 1},
		{"fewer networks", OtherNetwork, self, station(2, 1), 3, 0, 0},
		{"networks in another order", OtherNetwork, self, station(2, 2), 3, 0, 1},
	} {
		m := New(now, self, 3, 1)
		heard := announce(other, 3, false)
		m.Handle(now, 1, mac(1, 0), 0, heard, nil)
		c.s.Name = "stranger"
		a := announce(c.s, c.size, true)
		a.NIC = uint8(c.said)
		m.Handle(now, c.s.Node, c.s.MACs[c.said], c.nic, a, nil)
		c.s.NIC = c.nic
		m.Handle(now, 1, mac(1, 0), 0, heard, nil) // whose place is claimed: it is there still
		if want := (Fault{Kind: c.kind, A: c.a, B: c.s, Size: c.size}); !reflect.DeepEqual(m.Fault(), want) {
			t.Errorf("%s: %+v, want %+v", c.name, m.Fault(), want)
		}
	}
}

// What is heard of a station is what it has said, with the network by which it came first; an
// announcement says all of what its node was made with.
func TestHeard_IsWhatWasSaid(t *testing.T) {
	now := monotime.At(time.Second)
	placed := func(node int) Station {
		s := station(node, 2)
		s.Place = Place{Host: uint64(node) + 70, Cores: 3, Usable: 2, Path: transport.InProcess}
		return s
	}
	m := New(now, placed(1), 4, 1)
	var want []Station
	for _, k := range []int{3, 0, 2} { // in another order than theirs
		n := New(now, placed(k), 4, 1)
		out := n.Advance(now, nil)
		if len(out) != 1 || out[0].One {
			t.Fatalf("%+v", out)
		}
		for _, nic := range []int{1, 0} {
			a := out[0].Announcement
			a.NIC = uint8(nic)
			m.Handle(now, uint16(k), mac(k, nic), nic, &a, nil)
		}
		s := placed(k)
		s.NIC = 1
		want = append(want, s)
	}
	slices.SortFunc(want, func(a, b Station) int { return int(a.Node) - int(b.Node) })
	if got := m.Heard(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// An announcement of a network that its node does not have is no announcement.
func TestHandle_NoSuchNetwork(t *testing.T) {
	now := monotime.At(time.Second)
	m := New(now, station(0, 1), 2, 1)
	a := announce(station(1, 1), 2, true)
	a.NIC = 1
	if out := m.Handle(now, 1, mac(1, 0), 0, a, nil); len(out) > 0 || len(m.Heard()) > 0 {
		t.Errorf("%+v", out)
	}
}

// A cluster of one is complete at once, and says nothing.
func TestAlone(t *testing.T) {
	now := monotime.At(time.Second)
	m := New(now, station(0, 1), 1, 1)
	if _, ok := m.Deadline(); ok || m.State() != Complete || len(m.Advance(now.Add(time.Hour), nil)) > 0 {
		t.Errorf("%v, deadline %t", m.State(), ok)
	}
}
