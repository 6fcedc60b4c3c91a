package fabric

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// The tag with which a frame arrives, through two switches, by the configuration of the ports.
func TestTags_AcrossATrunk(t *testing.T) {
	prio := transport.Tag{PCP: 5, DEI: true}
	on := func(vid transport.VID, pcp transport.PCP) transport.Tag { return transport.Tag{VID: vid, PCP: pcp} }
	none := Port{}
	for _, c := range []struct {
		name            string
		from, trunk, to Port
		tagged          bool
		tag             transport.Tag
		arrives         bool
		wantTagged      bool
		want            transport.Tag
	}{
		{"zero ports: untagged", none, none, none, false, transport.Tag{}, true, false, transport.Tag{}},
		{"zero ports: priority tag", none, none, none, true, prio, true, true, prio},
		{"zero ports: VID 1", none, none, none, true, on(1, 3), true, true, on(1, 3)},
		{"zero ports: VID 4094", none, none, none, true, on(4094, 3), true, true, on(4094, 3)},
		{"trunk of 1 and 5: untagged", none, Trunk(1, 5), none, false, transport.Tag{}, true, false, transport.Tag{}},
		{"trunk of 1 and 5: VID 5", none, Trunk(1, 5), none, true, on(5, 0), true, true, on(5, 0)},
		{"trunk of 1 and 5: VID 6", none, Trunk(1, 5), none, true, on(6, 0), false, false, transport.Tag{}},
		{"trunk of 5: untagged", none, Trunk(5), none, false, transport.Tag{}, false, false, transport.Tag{}},
		{"trunk of none", none, Trunk(), none, true, on(5, 0), false, false, transport.Tag{}},
		{"access to access", Access(5), Trunk(5), Access(5), false, transport.Tag{}, true, false, transport.Tag{}},
		{"access to access, priority tag", Access(5), Trunk(5), Access(5), true, prio, true, false, transport.Tag{}},
		{"access to tagged", Access(5), Trunk(5), none, false, transport.Tag{}, true, true, on(5, 0)},
		{"access to tagged, priority tag", Access(5), Trunk(5), none, true, prio, true, true, transport.Tag{VID: 5, PCP: 5, DEI: true}},
		{"tagged to access", none, Trunk(5), Access(5), true, on(5, 7), true, false, transport.Tag{}},
		{"access to another VLAN", Access(5), none, Access(6), false, transport.Tag{}, false, false, transport.Tag{}},
		{"tagged only: untagged frames", Port{TaggedOnly: true}, none, none, false, transport.Tag{}, false, false, transport.Tag{}},
		{"tagged only: the PVID's leave tagged", none, none, Port{TaggedOnly: true}, false, transport.Tag{}, true, true, on(1, 0)},
		{"802.1Q's default: priority tag goes", Port{Untagged: []transport.VID{1}}, none, Port{Untagged: []transport.VID{1}}, true, prio, true, false, transport.Tag{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFabric(t, Config{})
			left, right := f.AddSwitch("left"), f.AddSwitch("right")
			connect(t, left, right, c.trunk)
			a, b := attach(t, left, Station{Port: c.from}), attach(t, right, Station{Port: c.to})
			sent := numbered(b.MAC(), 7)
			sent.Tagged, sent.Tag = c.tagged, c.tag
			send(t, a, sent)
			got := drain(t, b)
			if (len(got) == 1) != c.arrives || len(got) > 1 {
				t.Fatalf("%d frames arrived, want it to arrive: %t", len(got), c.arrives)
			}
			if c.arrives && (got[0].Tagged != c.wantTagged || got[0].Tag != c.want) {
				t.Errorf("arrived tagged=%t %v, want tagged=%t %v", got[0].Tagged, got[0].Tag, c.wantTagged, c.want)
			}
		})
	}
}

// fatTree cables leaves to tops, top i carrying VID 100+i alone: VFREC's VLAN-based fat tree.
func fatTree(t testing.TB, leaves, tops int) (f *Fabric, leaf, top []*Switch) {
	f = newFabric(t, Config{})
	for range leaves {
		leaf = append(leaf, f.AddSwitch(""))
	}
	for i := range tops {
		top = append(top, f.AddSwitch(""))
		for _, l := range leaf {
			connect(t, l, top[i], Trunk(transport.VID(100+i)))
		}
	}
	return f, leaf, top
}

// The fat tree's cables form loops, but no VID has one. Each frame goes by the top switch of its VID.
func TestVFREC_FatTreeOfVLANs_EachVIDHasItsTop(t *testing.T) {
	_, leaf, top := fatTree(t, 4, 3)
	a, b := attach(t, leaf[0], Station{}), attach(t, leaf[3], Station{})
	for i := range top {
		tag := transport.Tag{VID: transport.VID(100 + i)}
		send(t, a, withTag(numbered(b.MAC(), 1), tag))
		send(t, b, withTag(numbered(a.MAC(), 2), tag))
		wantNumbers(t, "b", b, 1)
		wantNumbers(t, "a", a, 2)
		for j, s := range top {
			want := uint64(0)
			if j <= i {
				want = 2
			}
			c := s.Counters()
			if n := c.Received(); n != want {
				t.Errorf("after VID %d, %v saw %d frames, want %d", tag.VID, s, n, want)
			}
		}
	}
	send(t, a, numbered(b.MAC(), 3)) // untagged: no top carries VLAN 1
	wantNumbers(t, "b", b)
}

func TestConnect_RefusesLoops(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(f *Fabric, cable func(a, b Device, p Port) error) error // the last cable's error
		loop  string                                                       // part of it; "": none
	}{
		{"a switch with itself", func(f *Fabric, cable func(a, b Device, p Port) error) error {
			s := f.AddSwitch("s")
			return cable(s, s, Port{})
		}, "untagged frames would go round s - s"},
		{"two cables", func(f *Fabric, cable func(a, b Device, p Port) error) error {
			a, b := f.AddSwitch("a"), f.AddSwitch("b")
			_ = cable(a, b, Port{})
			return cable(a, b, Trunk(7))
		}, "VID 7 would go round"},
		{"two cables, other VIDs", func(f *Fabric, cable func(a, b Device, p Port) error) error {
			a, b := f.AddSwitch("a"), f.AddSwitch("b")
			_ = cable(a, b, Trunk(1, 6))
			return cable(a, b, Trunk(7, 8))
		}, ""},
		{"ring of three, a VID that no port names", func(f *Fabric, cable func(a, b Device, p Port) error) error {
			a, b, c := f.AddSwitch("a"), f.AddSwitch("b"), f.AddSwitch("c")
			all := Port{TaggedOnly: true}
			_, _ = cable(a, b, all), cable(b, c, all)
			return cable(c, a, all)
		}, "would go round a - b - c - a"},
		{"hub between two switches", func(f *Fabric, cable func(a, b Device, p Port) error) error {
			a, b, h := f.AddSwitch("a"), f.AddSwitch("b"), f.AddHub("h")
			_, _ = cable(a, h, Port{}), cable(b, h, Port{})
			return cable(a, b, Trunk(5))
		}, "VID 5 would go round"},
		{"two hubs", func(f *Fabric, cable func(a, b Device, p Port) error) error {
			a, b := f.AddHub("a"), f.AddHub("b")
			_ = cable(a, b, Port{})
			return cable(a, b, Port{})
		}, "would go round b - a - b"},
		{"two VLANs joined by a cable between their access ports", func(f *Fabric, cable func(a, b Device, p Port) error) error {
			a, b := f.AddSwitch("a"), f.AddSwitch("b")
			_ = cable(a, b, Access(5)) // 5 and 5
			// Through a hub the untagged frames of VLAN 5 become VLAN 6's, and back by the second
			// cable.
			h := f.AddHub("h")
			_ = cable(a, h, Access(6))
			return cable(h, b, Access(5))
		}, ""},
		{"and those joined again elsewhere", func(f *Fabric, cable func(a, b Device, p Port) error) error {
			a, b, h, g := f.AddSwitch("a"), f.AddSwitch("b"), f.AddHub("h"), f.AddHub("g")
			_, _, _ = cable(a, b, Access(5)), cable(a, h, Access(6)), cable(h, b, Access(5))
			_ = cable(a, g, Access(5))
			return cable(g, a, Access(6))
		}, "untagged frames would go round"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFabric(t, Config{})
			err := c.build(f, func(a, b Device, p Port) error {
				ports := func() [2]int { return [2]int{a.plug().fwd.Ports(), b.plug().fwd.Ports()} }
				before := ports()
				_, err := f.Connect(a, b, p)
				if err != nil && ports() != before {
					t.Errorf("a refused cable left ports behind: %v, before %v", ports(), before)
				}
				return err
			})
			var loop *LoopError
			switch {
			case c.loop == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.loop != "" && (!errors.As(err, &loop) || !errors.Is(err, ErrLoop) || !strings.Contains(err.Error(), c.loop)):
				t.Errorf("got %v, want a *LoopError with %q", err, c.loop)
			}
		})
	}
}

func TestBuild_RefusesWhatDoesNotFit(t *testing.T) {
	f, other := newFabric(t, Config{}), newFabric(t, Config{})
	s, foreign := f.AddSwitch("s"), other.AddSwitch("foreign")
	taken := attach(t, s, Station{})
	for name, err := range map[string]error{
		"foreign device": func() error { _, err := f.Connect(s, foreign, Port{}); return err }(),
		"foreign switch": func() error { _, err := f.Attach(foreign, Station{}); return err }(),
		"group address":  func() error { _, err := f.Attach(s, Station{MAC: transport.MAC{1}}); return err }(),
		"address in use": func() error { _, err := f.Attach(s, Station{MAC: taken.MAC()}); return err }(),
		"stray untagged": func() error {
			_, err := f.Attach(s, Station{Port: Port{VIDs: []transport.VID{1}, Untagged: []transport.VID{2}}})
			return err
		}(),
		"contradiction": func() error {
			_, err := f.Attach(s, Station{Port: Port{TaggedOnly: true, Untagged: []transport.VID{2}}})
			return err
		}(),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), f.String()) {
			t.Errorf("%s: %v, want an error that begins with %v", name, err, f)
		}
	}
	if _, err := f.Attach(s, Station{Port: Access(4095)}); !errors.Is(err, transport.ErrBadTag) {
		t.Errorf("VID 4095: %v, want ErrBadTag", err)
	}
	if _, err := f.Connect(s, f.AddHub(""), Trunk(0)); !errors.Is(err, transport.ErrBadTag) {
		t.Errorf("VID 0: %v, want ErrBadTag", err)
	}
	mine := transport.MAC{2, 1, 1, 1, 1, 1}
	if l := attach(t, s, Station{MAC: mine}); l.MAC() != mine {
		t.Errorf("given address: %v", l.MAC())
	}
}

func TestHub_EveryStationHearsAndFilters(t *testing.T) {
	f := newFabric(t, Config{})
	hub := f.AddHub("")
	a, b, c := attach(t, hub, Station{}), attach(t, hub, Station{}), attach(t, hub, Station{})
	send(t, a, withTag(numbered(transport.Broadcast, 1), transport.Tag{VID: 9}), numbered(b.MAC(), 2))
	wantNumbers(t, "b", b, 1, 2)
	wantNumbers(t, "c", c, 1)
	wantNumbers(t, "a", a)
}

// VLANs 5 and 6 are joined outside of the switch. A station in both gets a broadcast in both, and never
// its own.
func TestOwnFrames_DoNotComeBackByAnotherVLAN(t *testing.T) {
	f := newFabric(t, Config{QueueFrames: 2})
	s, joint := f.AddSwitch("s"), f.AddHub("joint")
	connect(t, s, joint, Access(5))
	connect(t, s, joint, Access(6))
	a, b := attach(t, s, Station{Port: Port{PVID: 5}}), attach(t, s, Station{Port: Port{PVID: 5}})
	send(t, a, numbered(transport.Broadcast, 1))
	wantNumbers(t, "a", a)
	got := drain(t, b)
	if len(got) != 2 || got[0].Tagged || got[1].Tag.VID != 6 {
		t.Errorf("b received %+v; want it untagged from VLAN 5 and tagged from VLAN 6", got)
	}
	// One slot is left after a frame in a VLAN that is not joined; a broadcast needs two.
	send(t, a, withTag(numbered(b.MAC(), 2), transport.Tag{VID: 9}))
	wantBusy(t, "one slot for two copies", a, numbered(transport.Broadcast, 3))
	wantNumbers(t, "b", b, 2)
}

// A switch with ageing reads the clock: virtual here.
func TestAgeing_FloodsForSilentStations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFabric(t, Config{Ageing: time.Minute}).AddSwitch("")
		links, err := s.Links(2)
		if err != nil {
			t.Fatal(err)
		}
		send(t, links[1], numbered(links[0].MAC(), 1))
		time.Sleep(time.Minute - time.Nanosecond)
		send(t, links[0], numbered(links[1].MAC(), 2))
		time.Sleep(time.Nanosecond)
		send(t, links[0], numbered(links[1].MAC(), 3))
		if c := s.Counters(); c.Flooded != 2 || c.Forwarded != 1 {
			t.Errorf("counters %+v; want flooding before the station was heard and after it aged", c)
		}
	})
}

func TestSetUp_CableCutAndHealed(t *testing.T) {
	f := newFabric(t, Config{})
	left, right := f.AddSwitch("left"), f.AddSwitch("right")
	cable := connect(t, left, right, Port{})
	a, b := attach(t, left, Station{}), attach(t, right, Station{})
	send(t, a, numbered(b.MAC(), 1))
	send(t, b, numbered(a.MAC(), 2))
	cable.SetUp(false)
	send(t, a, numbered(b.MAC(), 3), numbered(transport.Broadcast, 4))
	cable.SetUp(true)
	send(t, a, numbered(b.MAC(), 5))
	wantNumbers(t, "b", b, 1, 5)
	if c := left.Counters(); c.Addresses != 1 || c.Flooded != 3 {
		t.Errorf("left: %+v; want b forgotten with the cable: flooded before it was known, when cut, when healed", c)
	}
	if cable.String() != "left - right" || left.String() != "left" {
		t.Errorf("names: %v, %v", cable, left)
	}
}

func TestSetUp_LinkUnplugged(t *testing.T) {
	s := newFabric(t, Config{}).AddSwitch("")
	links, err := s.Links(3)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := links[0], links[1], links[2]
	b.SetUp(false)
	send(t, a, numbered(b.MAC(), 1), numbered(transport.Broadcast, 2))
	send(t, b, numbered(transport.Broadcast, 3)) // lost on its way
	wantNumbers(t, "b", b)
	wantNumbers(t, "c", c, 2)
	if n := s.Counters(); n.Received() != 2 {
		t.Errorf("the switch took in %d frames, want those of a alone", n.Received())
	}
	b.SetUp(true)
	send(t, a, numbered(b.MAC(), 4))
	wantNumbers(t, "b", b, 4)
}

func TestFlush_FloodsUntilLearnedAnew(t *testing.T) {
	f := newFabric(t, Config{})
	s := f.AddSwitch("")
	links, err := s.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	exchange := func() {
		send(t, links[0], numbered(links[1].MAC(), 1))
		send(t, links[1], numbered(links[0].MAC(), 2))
	}
	exchange()
	exchange()
	s.Flush()
	exchange()
	if c := s.Counters(); c.Flooded != 2 || c.Forwarded != 4 {
		t.Errorf("counters %+v; want flooding for the first frame and the first after Flush", c)
	}
}

// A station with a full queue holds its senders up until it closes; its address is free after that.
func TestClose_LetsSendersGo(t *testing.T) {
	f := newFabric(t, Config{QueueFrames: 2})
	s := f.AddSwitch("")
	a, b := attach(t, s, Station{}), attach(t, s, Station{})
	fill(t, a, b, 2)
	wantBusy(t, "full", a, numbered(b.MAC(), 2))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, a, b, 10)
	again := attach(t, s, Station{MAC: b.MAC()})
	send(t, a, numbered(b.MAC(), 5))
	wantNumbers(t, "its successor", again, 5)
	if again.Name() == b.Name() {
		t.Errorf("two links are named %s", b.Name())
	}
}

func TestJoin_RefusesStationAddresses(t *testing.T) {
	links, err := Links(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := links[0].Join(transport.MAC{2}); err == nil {
		t.Error("Join of a station's address: no error")
	}
	if err := links[0].Leave(transport.MAC{3}); err == nil {
		t.Error("Leave of a group that was not joined: no error")
	}
}
