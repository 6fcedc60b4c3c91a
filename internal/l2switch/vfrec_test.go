package l2switch

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// Three stations on one switch; 0 and 1 talk, 2 looks on. A message goes out on one VID and its
// answer comes back on another: every switch learns 0 in the one and 1 in the other alone.
func TestVFREC_4_3_AsymmetricVIDsFloodForEver(t *testing.T) {
	s := newSwitch(t, Config{}, Port{}, Port{}, Port{})
	for i := range 100 {
		out := s.Forward(start, 0, taggedFrame(station(0x10), station(0x11), tag(10, 0, false)), nil)
		back := s.Forward(start, 1, taggedFrame(station(0x11), station(0x10), tag(20, 0, false)), nil)
		if len(out) != 2 || len(back) != 2 {
			t.Fatalf("exchange %d: message to %d ports, answer to %d; want flooding to 2 both ways", i, len(out), len(back))
		}
	}
	if c := s.Counters(); c.Flooded != 200 || c.Forwarded != 0 {
		t.Errorf("flooded %d, forwarded %d; want all 200 flooded", c.Flooded, c.Forwarded)
	}
}

// The paper's two walks through a change of route from VID 10 to VID 20, its figure 7. Each step
// says which station sends on which VID, and whether that floods.
func TestVFREC_4_3_RouteChange(t *testing.T) {
	const old, changed = 10, 20
	type step struct {
		from   int
		vid    transport.VID
		floods bool
		why    string
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"A: the sender changes first", []step{
			{0, changed, true, "(1) nobody has heard the receiver on the new VID"},
			{1, old, false, "(2) the answer finds the sender on the old one"},
			{0, changed, true, "(3) and teaches the new one nothing"},
			{1, changed, false, "(4) the receiver has changed: the sender is known since (1)"},
			{0, changed, false, "from now on nothing floods"},
			{1, changed, false, "in either direction"},
		}},
		{"B: the receiver changes first", []step{
			{0, old, false, "(1) the sender knows nothing of it"},
			{1, changed, true, "(2) nobody has heard the sender on the new VID"},
			{0, changed, false, "(3) the sender has changed: the receiver is known since (2)"},
			{1, changed, false, "from now on nothing floods"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSwitch(t, Config{}, Port{}, Port{}, Port{})
			send := func(from int, vid transport.VID) int {
				f := taggedFrame(station(byte(0x10+from)), station(byte(0x11-from)), tag(vid, 0, false))
				return len(s.Forward(start, from, f, nil))
			}
			send(0, old)
			send(1, old)
			for _, st := range c.steps {
				want := 1
				if st.floods {
					want = 2
				}
				if n := send(st.from, st.vid); n != want {
					t.Errorf("%s: to %d ports, want %d", st.why, n, want)
				}
			}
		})
	}
}
