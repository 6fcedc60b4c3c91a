package l2switch

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

var start = monotime.At(time.Second)

// station returns the address of station n.
func station(n byte) transport.MAC { return transport.MAC{2, 0, 0, 0, 0, n} }

// newSwitch makes a switch with these ports.
func newSwitch(t testing.TB, cfg Config, ports ...Port) *Switch {
	t.Helper()
	s := New(cfg)
	for _, p := range ports {
		if _, err := s.AddPort(p); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// untaggedFrame and taggedFrame make frames from station src to dst.
func untaggedFrame(src, dst transport.MAC) *transport.Frame {
	return &transport.Frame{Src: src, Dst: dst}
}
func taggedFrame(src, dst transport.MAC, tag transport.Tag) *transport.Frame {
	return &transport.Frame{Src: src, Dst: dst, OptionalTag: transport.Tagged(tag)}
}

func wantOut(t *testing.T, what string, got []Egress, want ...Egress) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: leaves by %+v, want %+v", what, got, want)
	}
}

// tag is a shorthand for the tables.
func tag(vid transport.VID, pcp transport.PCP, dei bool) transport.Tag {
	return transport.Tag{VID: vid, PCP: pcp, DEI: dei}
}

// The rows of how a frame's tag changes from port to port: broadcasts from port 0 to port 1.
func TestTag_FromPortToPort(t *testing.T) {
	native5 := Port{PVID: 5, VIDs: []transport.VID{5, 6}}
	for _, c := range []struct {
		name    string
		in, out Port
		tagged  bool
		tag     transport.Tag
		leaves  bool
		want    Egress
	}{
		{"access to access", Access(7), Access(7), false, transport.Tag{}, true, Egress{}},
		{"access to another VLAN's access", Access(7), Access(8), false, transport.Tag{}, false, Egress{}},
		{"access to trunk gains the PVID", Access(7), Trunk(7), false, transport.Tag{}, true, Egress{OptionalTag: transport.Tagged(tag(7, 0, false))}},
		{"priority tag to trunk: VID is the PVID, priority and DEI stay", Access(7), Trunk(7), true, tag(0, 5, true), true, Egress{OptionalTag: transport.Tagged(tag(7, 5, true))}},
		{"priority tag to access goes, as 802.1Q says", Access(7), Access(7), true, tag(0, 5, false), true, Egress{}},
		{"trunk to access loses the tag", Trunk(7), Access(7), true, tag(7, 3, true), true, Egress{}},
		{"trunk to trunk keeps all of it", Trunk(7), Trunk(7), true, tag(7, 3, true), true, Egress{OptionalTag: transport.Tagged(tag(7, 3, true))}},
		{"trunk to a trunk without the VID", Trunk(7), Trunk(8), true, tag(7, 0, false), false, Egress{}},

		{"transparent: untagged stays", Port{}, Port{}, false, transport.Tag{}, true, Egress{}},
		{"transparent: priority tag stays", Port{}, Port{}, true, tag(0, 6, true), true, Egress{OptionalTag: transport.Tagged(tag(0, 6, true))}},
		{"transparent: zero tag stays a tag", Port{}, Port{}, true, tag(0, 0, false), true, Egress{OptionalTag: transport.Tagged(transport.Tag{})}},
		{"transparent: the PVID's tag stays", Port{}, Port{}, true, tag(1, 2, false), true, Egress{OptionalTag: transport.Tagged(tag(1, 2, false))}},
		{"transparent: another VID stays", Port{}, Port{}, true, tag(4094, 7, true), true, Egress{OptionalTag: transport.Tagged(tag(4094, 7, true))}},
		{"transparent to the VLAN's access", Port{}, Access(9), true, tag(9, 1, false), true, Egress{}},

		{"keep, other PVID: untagged in VLAN 6 gains its tag", Access(6), native5, false, transport.Tag{}, true, Egress{OptionalTag: transport.Tagged(tag(6, 0, false))}},
		{"keep, same PVID: untagged in VLAN 5 stays", Access(5), native5, false, transport.Tag{}, true, Egress{}},
		{"keep, same PVID: tagged in VLAN 5 stays", Trunk(5), native5, true, tag(5, 4, false), true, Egress{OptionalTag: transport.Tagged(tag(5, 4, false))}},
		{"PVID without membership: not taken in", Port{PVID: 9, VIDs: []transport.VID{}}, Port{}, false, transport.Tag{}, false, Egress{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSwitch(t, Config{}, c.in, c.out)
			f := &transport.Frame{Src: station(1), Dst: transport.Broadcast, OptionalTag: transport.OptionalTag{Tagged: c.tagged, Tag: c.tag}}
			got := s.Forward(start, 0, f, nil)
			if c.want.Port = 1; !c.leaves {
				wantOut(t, "broadcast", got)
				return
			}
			wantOut(t, "broadcast", got, c.want)
		})
	}
}

// The rows of what becomes of a frame. Stations 1 and 2 were learned behind ports 1 and 2 in VLAN
// 1. Ports 3 and 5 are members of nothing, port 4 is a trunk of VID 2.
func TestVerdict_OfEachKind(t *testing.T) {
	lowLocal, highLocal := transport.MAC{1, 0x80, 0xc2, 0, 0, 0}, transport.MAC{1, 0x80, 0xc2, 0, 0, 0x0f}
	for _, c := range []struct {
		name string
		in   int
		f    *transport.Frame
		want Verdict
		out  []int
	}{
		{"known", 1, untaggedFrame(station(1), station(2)), Forwarded, []int{2}},
		{"not known", 1, untaggedFrame(station(1), station(7)), Flooded, []int{0, 2}},
		{"known in another VID only", 1, taggedFrame(station(1), station(2), tag(2, 0, false)), Flooded, []int{0, 2, 4}},
		{"group", 1, untaggedFrame(station(1), transport.MAC{3, 0, 0, 0, 0, 1}), Multicast, []int{0, 2}},
		{"broadcast", 2, untaggedFrame(station(2), transport.Broadcast), Multicast, []int{0, 1}},
		{"to itself", 1, untaggedFrame(station(1), station(1)), SamePort, nil},
		{"untagged where only tagged are accepted", 4, untaggedFrame(station(9), station(1)), NotAccepted, nil},
		{"priority tag where only tagged are accepted", 4, taggedFrame(station(9), station(1), tag(0, 7, false)), NotAccepted, nil},
		{"ingress filter", 4, taggedFrame(station(9), station(1), tag(3, 0, false)), NotMember, nil},
		{"VID 4095", 1, taggedFrame(station(1), station(2), tag(4095, 0, false)), BadVID, nil},
		{"source is a group", 1, untaggedFrame(transport.MAC{3}, station(2)), BadSource, nil},
		{"no source", 1, untaggedFrame(transport.MAC{}, station(2)), BadSource, nil},
		{"first link-local address", 1, untaggedFrame(station(1), lowLocal), LinkLocal, nil},
		{"last link-local address", 1, untaggedFrame(station(1), highLocal), LinkLocal, nil},
		{"the address after those", 1, untaggedFrame(station(1), transport.MAC{1, 0x80, 0xc2, 0, 0, 0x10}), Multicast, []int{0, 2}},
		{"port down", 6, untaggedFrame(station(1), station(2)), PortDown, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSwitch(t, Config{}, Port{}, Port{}, Port{},
				Port{VIDs: []transport.VID{}}, Trunk(2), Port{VIDs: []transport.VID{}}, Port{})
			s.SetUp(6, false)
			s.Forward(start, 1, untaggedFrame(station(1), transport.Broadcast), nil)
			s.Forward(start, 2, untaggedFrame(station(2), transport.Broadcast), nil)

			before := s.Counters()
			out, v := s.Decide(start, c.in, c.f, nil)
			if s.Count(v); v != c.want {
				t.Errorf("verdict: %v, want %v", v, c.want)
			}
			var ports []int
			for _, e := range out {
				ports = append(ports, e.Port)
			}
			if !slices.Equal(ports, c.out) {
				t.Errorf("leaves by %v, want %v", ports, c.out)
			}
			if after := s.Counters(); after.Received() != before.Received()+1 {
				t.Errorf("counted %d times", after.Received()-before.Received())
			}
		})
	}
}

func TestLearning_MovesWithTheStation(t *testing.T) {
	s := newSwitch(t, Config{}, Port{}, Port{}, Port{})
	s.Forward(start, 1, untaggedFrame(station(1), transport.Broadcast), nil)
	wantOut(t, "to where it was first", s.Forward(start, 0, untaggedFrame(station(2), station(1)), nil), Egress{Port: 1})
	s.Forward(start, 2, untaggedFrame(station(1), transport.Broadcast), nil)
	wantOut(t, "to where it moved", s.Forward(start, 0, untaggedFrame(station(2), station(1)), nil), Egress{Port: 2})
	if c := s.Counters(); c.Learned != 2 || c.Moved != 1 || c.Addresses != 2 {
		t.Errorf("counters: %+v, want 2 learned, 1 moved", c)
	}
}

func TestAgeing_ForgetsAtTheAge(t *testing.T) {
	s := newSwitch(t, Config{Ageing: time.Minute}, Port{}, Port{}, Port{})
	s.Forward(start, 1, untaggedFrame(station(1), transport.Broadcast), nil)
	probe := func(age time.Duration) int {
		return len(s.Forward(start.Add(age), 0, untaggedFrame(station(2), station(1)), nil))
	}
	if n := probe(time.Minute - 1); n != 1 {
		t.Errorf("just before the age: to %d ports, want 1", n)
	}
	if n := probe(time.Minute); n != 2 {
		t.Errorf("at the age: to %d ports, want flooding to 2", n)
	}
	if n := probe(0); n != 2 {
		t.Errorf("an instant from before: to %d ports, want 2: time does not run back", n)
	}
	s.Forward(start.Add(2*time.Minute), 1, untaggedFrame(station(1), transport.Broadcast), nil)
	if n := probe(2*time.Minute + 1); n != 1 {
		t.Errorf("heard again: to %d ports, want 1", n)
	}

	forever := newSwitch(t, Config{Ageing: NeverAge}, Port{}, Port{}, Port{})
	forever.Forward(start, 1, untaggedFrame(station(1), transport.Broadcast), nil)
	if out := forever.Forward(start.Add(1e6*time.Hour), 0, untaggedFrame(station(2), station(1)), nil); len(out) != 1 {
		t.Errorf("NeverAge: to %d ports after a century, want 1", len(out))
	}
}

// A switch that is told nothing keeps a silent station for the five minutes of IEEE 802.1Q §8.8.3.
func TestAgeing_DefaultIsTheStandards(t *testing.T) {
	s := newSwitch(t, Config{}, Port{}, Port{}, Port{})
	s.Forward(start, 1, untaggedFrame(station(1), transport.Broadcast), nil)
	for i, age := range []time.Duration{5*time.Minute - 1, 5 * time.Minute} {
		if out := s.Forward(start.Add(age), 0, untaggedFrame(station(2), station(1)), nil); len(out) != i+1 {
			t.Errorf("after %v of silence: to %d ports, want %d", age, len(out), i+1)
		}
	}
}

func TestAddresses_FullTableFloodsUntilOneAges(t *testing.T) {
	s := newSwitch(t, Config{Ageing: time.Minute, Addresses: 2}, Port{}, Port{}, Port{})
	for i := range 3 {
		s.Forward(start.Add(time.Duration(i)*time.Second), 1, untaggedFrame(station(byte(i+1)), transport.Broadcast), nil)
	}
	if c := s.Counters(); c.Addresses != 2 || c.TableFull != 1 || c.Learned != 2 {
		t.Errorf("three stations, room for two: %+v", c)
	}
	if s.table.oldest != start {
		t.Errorf("oldest entry is of %v, want %v: without it each new address costs a pass over a full table", s.table.oldest, start)
	}
	s.Forward(start.Add(time.Minute), 1, untaggedFrame(station(3), transport.Broadcast), nil) // station 1 has aged
	if want := start.Add(time.Second); s.table.oldest != want {
		t.Errorf("oldest entry after station 1 aged is of %v, want %v", s.table.oldest, want)
	}
	if c := s.Counters(); c.Addresses != 2 || c.Learned != 3 {
		t.Errorf("after one aged: %+v, want a third learned in its place", c)
	}
}

// A full table whose addresses have all been heard of late learns no other one, and says so.
func TestAddresses_FullTableOfThoseThatAreHeard(t *testing.T) {
	s := newSwitch(t, Config{Ageing: time.Minute, Addresses: 2}, Port{}, Port{})
	hear := func(at time.Duration, stations ...byte) {
		for _, n := range stations {
			s.Forward(start.Add(at), 1, untaggedFrame(station(n), transport.Broadcast), nil)
		}
	}
	hear(0, 1, 2)
	hear(50*time.Second, 1, 2)
	hear(70*time.Second, 3)
	if c := s.Counters(); c.Addresses != 2 || c.Learned != 2 || c.TableFull != 1 {
		t.Errorf("two stations are heard, room for two, and a third: %+v", c)
	}
	if out := s.Forward(start.Add(71*time.Second), 0, untaggedFrame(station(9), station(2)), nil); len(out) != 1 {
		t.Errorf("one that is heard was forgotten: to %d ports", len(out))
	}
}

func TestSetUp_ForgetsWhatWasBehindThePort(t *testing.T) {
	s := newSwitch(t, Config{}, Port{}, Port{}, Port{})
	s.Forward(start, 1, untaggedFrame(station(1), transport.Broadcast), nil)
	s.Forward(start, 2, untaggedFrame(station(2), transport.Broadcast), nil)
	s.SetUp(1, false)
	wantOut(t, "for a station that was cut off", s.Forward(start, 0, untaggedFrame(station(3), station(1)), nil), Egress{Port: 2})
	wantOut(t, "for another", s.Forward(start, 0, untaggedFrame(station(3), station(2)), nil), Egress{Port: 2})
	s.SetUp(1, true)
	wantOut(t, "healed", s.Forward(start, 0, untaggedFrame(station(3), station(1)), nil), Egress{Port: 1}, Egress{Port: 2})
	s.Flush()
	wantOut(t, "flushed", s.Forward(start, 0, untaggedFrame(station(3), station(2)), nil), Egress{Port: 1}, Egress{Port: 2})
}

func TestReach_IsWhereItFloodsIfAllWereUp(t *testing.T) {
	s := newSwitch(t, Config{}, Port{}, Access(5), Trunk(5, 6))
	s.SetUp(0, false)
	s.SetUp(2, false)
	wantOut(t, "VID 5", s.Reach(0, transport.Tagged(tag(5, 0, false)), nil), Egress{Port: 1}, Egress{Port: 2, OptionalTag: transport.Tagged(tag(5, 0, false))})
	wantOut(t, "VID 7", s.Reach(0, transport.Tagged(tag(7, 0, false)), nil))
	if c := s.Counters(); c != (Counters{}) {
		t.Errorf("Reach counted: %+v", c)
	}
}

func TestAddPort_RefusesWhatNoPortCanBe(t *testing.T) {
	s := New(Config{})
	for _, p := range []Port{{PVID: 4095}, Access(5000), Trunk(0)} {
		if _, err := s.AddPort(p); !errors.Is(err, transport.ErrBadTag) {
			t.Errorf("port %+v: %v, want ErrBadTag", p, err)
		}
	}
	for _, p := range []Port{{VIDs: []transport.VID{5}, Untagged: []transport.VID{6}}, {Untagged: []transport.VID{6}, TaggedOnly: true}} {
		if _, err := s.AddPort(p); err == nil {
			t.Errorf("port %+v: no error", p)
		}
	}
	if s.Ports() != 0 {
		t.Errorf("%d ports after refusals", s.Ports())
	}
}

func TestHub_RepeatsToAllOthers(t *testing.T) {
	h := New(Config{Repeater: true})
	for range 4 {
		if _, err := h.AddPort(Port{PVID: 4095}); err != nil { // configurations do not matter
			t.Fatal(err)
		}
	}
	f := taggedFrame(station(1), station(2), tag(0, 3, true))
	hubOut := func(in int) []Egress { out, _ := h.Decide(start, in, f, nil); return out }
	with := func(port int) Egress { return Egress{Port: port, OptionalTag: transport.Tagged(f.Tag)} }
	wantOut(t, "all up", hubOut(1), with(0), with(2), with(3))
	h.SetUp(2, false)
	wantOut(t, "one down", hubOut(1), with(0), with(3))
	wantOut(t, "in by the one that is down", hubOut(2))
	wantOut(t, "reach", h.Reach(1, f.OptionalTag, nil), with(0), with(2), with(3))
	for _, f := range []*transport.Frame{
		untaggedFrame(station(1), station(2)), taggedFrame(station(1), station(2), tag(1, 2, false)),
		taggedFrame(station(1), station(2), tag(4094, 7, true)), taggedFrame(station(1), station(2), tag(0, 0, false)),
		untaggedFrame(transport.MAC{}, station(2)), untaggedFrame(station(1), transport.MAC{1, 0x80, 0xc2}),
		taggedFrame(station(1), transport.MAC{1, 0x80, 0xc2}, tag(4094, 0, false)),
	} {
		out, _ := h.Decide(start, 2, f, nil)
		wantOut(t, "in by one that is down", out)
		out, _ = h.Decide(start, 0, f, nil)
		wantOut(t, "as it came", out, Egress{1, f.OptionalTag}, Egress{3, f.OptionalTag})
	}
}

func TestNames(t *testing.T) {
	for v := range verdicts {
		if v.String() == "" || v.String() == "unknown" {
			t.Errorf("verdict %d has no name", v)
		}
	}
	if verdicts.String() != "unknown" {
		t.Error("names")
	}
}

func TestForward_DoesNotAllocate(t *testing.T) {
	s := newSwitch(t, Config{}, Port{}, Port{}, Port{})
	out := make([]Egress, 0, 8)
	s.Forward(start, 0, untaggedFrame(station(1), transport.Broadcast), out)
	s.Forward(start, 1, untaggedFrame(station(2), transport.Broadcast), out)
	for name, f := range map[string]*transport.Frame{
		"unicast":   untaggedFrame(station(1), station(2)),
		"unknown":   untaggedFrame(station(1), station(3)),
		"broadcast": untaggedFrame(station(1), transport.Broadcast),
	} {
		if n := testing.AllocsPerRun(100, func() { out = s.Forward(start, 0, f, out[:0]) }); n != 0 {
			t.Errorf("%s: %v allocs, want 0", name, n)
		}
	}
}
