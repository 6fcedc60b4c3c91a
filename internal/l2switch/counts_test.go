package l2switch

import (
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// The counters of learning tell a station that is new, one that has moved, one that was forgotten,
// and one that is where it was.
func TestLearning_Counters(t *testing.T) {
	s := newSwitch(t, Config{Ageing: time.Minute}, Port{}, Port{}, Port{})
	say := func(at time.Duration, port int) {
		s.Forward(start.Add(at), port, untaggedFrame(station(1), transport.Broadcast), nil)
	}
	for _, c := range []struct {
		what           string
		at             time.Duration
		port           int
		learned, moved uint64
	}{
		{"new", 0, 1, 1, 0},
		{"where it was", 1, 1, 1, 0},
		{"again", 2, 1, 1, 0},
		{"moved", 3, 2, 1, 1},
		{"forgotten", 2 * time.Minute, 2, 2, 1},
		{"forgotten, and elsewhere", 4 * time.Minute, 0, 3, 1},
	} {
		say(c.at, c.port)
		if got := s.Counters(); got.Learned != c.learned || got.Moved != c.moved {
			t.Errorf("%s: %d learned, %d moved; want %d and %d", c.what, got.Learned, got.Moved, c.learned, c.moved)
		}
	}
}

// A hub learns nothing: it repeats also what goes to a station that it has heard.
func TestHub_RepeatsToStationsThatWereHeard(t *testing.T) {
	s := newSwitch(t, Config{Repeater: true}, Port{}, Port{}, Port{})
	s.Forward(start, 1, untaggedFrame(station(1), transport.Broadcast), nil)
	wantOut(t, "to a station that was heard", s.Forward(start, 0, untaggedFrame(station(2), station(1)), nil),
		Egress{Port: 1}, Egress{Port: 2})
	if c := s.Counters(); c.Learned != 0 || c.Addresses != 0 {
		t.Errorf("a hub has learned: %+v", c)
	}
}

// What was behind a port that is removed is flooded again, and a port of that number begins anew.
func TestRemovePort_ForgetsWhatWasBehindIt(t *testing.T) {
	s := newSwitch(t, Config{}, Port{}, Port{}, Port{})
	s.Forward(start, 2, untaggedFrame(station(1), transport.Broadcast), nil)
	s.RemovePort(2)
	if n := s.Ports(); n != 2 {
		t.Errorf("%d ports of three, of which one is removed", n)
	}
	wantOut(t, "the port is gone", s.Forward(start, 0, untaggedFrame(station(2), station(1)), nil), Egress{Port: 1})
	if _, err := s.AddPort(Port{}); err != nil {
		t.Fatal(err)
	}
	wantOut(t, "another in its place", s.Forward(start, 0, untaggedFrame(station(2), station(1)), nil),
		Egress{Port: 1}, Egress{Port: 2})
}

func TestAddPort_MaxPorts(t *testing.T) {
	s := New(Config{Repeater: true})
	for k := range 4096 {
		if n, err := s.AddPort(Port{}); n != k || err != nil {
			t.Fatalf("port %d: %d, %v", k, n, err)
		}
	}
	if _, err := s.AddPort(Port{}); err == nil || !strings.Contains(err.Error(), "at most 4096 ports") || s.Ports() != 4096 {
		t.Errorf("one port more: %v, %d ports", err, s.Ports())
	}
}
