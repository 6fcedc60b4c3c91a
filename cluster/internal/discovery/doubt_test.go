package discovery

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// hears has m hear a station of 3 nodes.
func hears(m *Discovery, now monotime.Time, s Station, failed bool) []Send {
	a := announce(s, 3, !failed)
	a.Failed = failed
	return m.Handle(now, s.Node, s.MACs[0], 0, a, nil)
}

// advance has m do what is due until a time.
func advance(m *Discovery, until monotime.Time) {
	for at, ok := m.Deadline(); ok && !at.After(until); at, ok = m.Deadline() {
		m.Advance(at, nil)
	}
}

// A seeker takes the other address of a node that was heard and has fallen silent, and not before.
func TestDoubt_ANodeThatBeganAnew(t *testing.T) {
	now := monotime.At(time.Second)
	anew := Station{Node: 1, MACs: []transport.MAC{mac(9, 0)}, Name: "host1"}
	for _, settling := range []bool{false, true} {
		m := New(now, station(0, 1), 3, 1)
		hears(m, now, station(1, 1), false)
		if settling {
			hears(m, now, station(2, 1), false)
		}
		claimed := now.Add(time.Millisecond)
		for k := range 3 { // it seeks
			hears(m, claimed.Add(time.Duration(k)*LastInterval), anew, false)
			advance(m, claimed.Add(time.Duration(k)*LastInterval))
		}
		hears(m, claimed, station(2, 1), false)
		advance(m, claimed.Add(silentFor-time.Millisecond))
		if m.State() != Seeking || !slices.Equal(m.Missing(), []uint16{1}) {
			t.Errorf("before: %v, missing %v", m.State(), m.Missing())
		}
		advance(m, claimed.Add(silentFor+2*LastInterval))
		if m.State() != Complete || !slices.Equal(m.Heard()[0].MACs, anew.MACs) {
			t.Errorf("in the end: %v, heard %v", m.State(), m.Heard())
		}
	}
}

// A node that says that it has failed is not heard, or not any more; until it begins anew.
func TestDoubt_ANodeThatHasFailed(t *testing.T) {
	now := monotime.At(time.Second)
	m := New(now, station(0, 1), 3, 1)
	hears(m, now, station(1, 1), true)
	if !slices.Equal(m.Missing(), []uint16{1, 2}) {
		t.Errorf("missing %v", m.Missing())
	}
	hears(m, now, station(1, 1), false)
	hears(m, now, station(2, 1), false)
	hears(m, now, station(2, 1), true)
	if m.State() != Seeking || !slices.Equal(m.Missing(), []uint16{2}) {
		t.Errorf("%v, missing %v", m.State(), m.Missing())
	}
	hears(m, now, station(2, 1), false)
	if advance(m, now.Add(time.Second)); m.State() != Complete {
		t.Errorf("%v, missing %v", m.State(), m.Missing())
	}
	hears(m, now, station(1, 1), true)
	if m.State() != Complete {
		t.Errorf("complete, and then %v", m.State())
	}
}

// One of two with one number that says that it has failed is there, as the other one is.
func TestDoubt_ADoubleThatHasFailed(t *testing.T) {
	now := monotime.At(time.Second)
	m := New(now, station(0, 1), 3, 1)
	hears(m, now, station(1, 1), false)
	out := hears(m, now, Station{Node: 1, MACs: []transport.MAC{mac(9, 0)}}, true)
	if m.State() != Failed || m.Fault().Kind != SameNumber || len(out) != 1 || !out[0].Announcement.Failed {
		t.Errorf("%v, %+v, %+v", m.State(), m.Fault(), out)
	}
}
