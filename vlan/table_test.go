package vlan_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

func station(i int) transport.MAC { return transport.MAC{0x02, 0, 0, 0, byte(i >> 8), byte(i)} }

func by(dst transport.MAC, vid transport.VID) vlan.Route {
	return vlan.Route{Dst: dst, OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
}

func newTable(t testing.TB, routes ...vlan.Route) *vlan.Table {
	t.Helper()
	table, err := vlan.NewTable(routes)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// held is what a sender reads that keeps the destination's entry.
func held(table *vlan.Table, dst transport.MAC) transport.OptionalTag {
	tag, _ := table.Destinations(dst)[0].Route()
	return tag
}

// An entry that a sender keeps follows every change: of its own route, of the default, and back.
func TestDestination_FollowsTheTable(t *testing.T) {
	table := newTable(t)
	d := table.Destinations(a, transport.Broadcast)
	for _, x := range []struct {
		change func() error
		toA    transport.VID
		toAll  transport.VID
	}{
		{func() error { return nil }, 0, 0},
		{func() error { return table.Set(by(transport.Broadcast, 9)) }, 9, 9},
		{func() error { return table.Set(by(a, 1)) }, 1, 9},
		{func() error { return table.Set(by(b, 2)) }, 1, 9},
		{func() error { return table.Set(by(a, 3)) }, 3, 9},
		{func() error { return table.Replace([]vlan.Route{by(b, 2)}) }, 0, 0},
		{func() error { return table.Replace([]vlan.Route{by(a, 4), by(transport.Broadcast, 5)}) }, 4, 5},
	} {
		if err := x.change(); err != nil {
			t.Fatal(err)
		}
		if own := x.toA != x.toAll; d[0].FollowsDefault() == own || d[1].FollowsDefault() {
			t.Errorf("a follows the default: %v, the default itself: %v", d[0].FollowsDefault(), d[1].FollowsDefault())
		}
		for i, want := range []transport.VID{x.toA, x.toAll} {
			tag, count := d[i].Route()
			if tag.Tag.VID != want || tag.Tagged != (want != 0) || count == nil {
				t.Errorf("%v, counted %v: want VID %d", tag, count != nil, want)
			}
		}
	}
}

// To change a route to a VID that it has had before allocates nothing, however large the table.
func TestTable_SetAllocatesNothing(t *testing.T) {
	table, vid := bigTable(t, vlan.MaxRoutes-1), transport.VID(1)
	round := func() {
		vid = 1 + vid%4
		if err := table.Set(by(station(77), vid)); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocs, want 0", n)
	}
}

func TestTable_ChangesCountsWhatIsSet(t *testing.T) {
	a, b := station(1), station(2)
	table := newTable(t, by(a, 1), by(transport.Broadcast, 1))
	for _, c := range []struct {
		name   string
		change func() error
		a, b   uint64 // so far
	}{
		{"nothing", func() error { return nil }, 1, 0},
		{"of the default", func() error { return table.Set(by(transport.Broadcast, 2)) }, 1, 0},
		{"to a new VID", func() error { return table.Set(by(a, 2)) }, 2, 0},
		{"to the same", func() error { return table.Set(by(a, 2)) }, 3, 0},
		{"of two", func() error { return table.Set(by(a, 1), by(b, 1)) }, 4, 1},
		{"of all", func() error { return table.Replace([]vlan.Route{by(b, 1)}) }, 5, 2},
		{"of all, again", func() error { return table.Replace([]vlan.Route{by(b, 1)}) }, 5, 3},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if gotA, gotB := table.Changes(a), table.Changes(b); gotA != c.a || gotB != c.b {
			t.Errorf("a change %s: %d and %d changes, want %d and %d", c.name, gotA, gotB, c.a, c.b)
		}
	}
	if err := table.Set(by(a, 4095)); err == nil || table.Changes(a) != 5 {
		t.Errorf("a bad route: %v, %d changes, want an error and 5", err, table.Changes(a))
	}
}

// An update is given what is in force, and changes the destination's own route alone, or nothing.
func TestTable_Update(t *testing.T) {
	a, b := station(1), station(2)
	table := newTable(t, by(a, 1), by(transport.Broadcast, 5))
	for _, c := range []struct {
		name    string
		dst     transport.MAC
		now     transport.VID
		changes uint64 // before
		next    transport.VID
		change  bool
		after   uint64
		fails   bool
	}{
		{"no change", a, 1, 1, 2, false, 1, false},
		{"a change", a, 1, 1, 2, true, 2, false},
		{"to the same", a, 2, 2, 2, true, 3, false},
		{"to a bad one", a, 2, 3, 4095, true, 3, true},
		{"by the default, no change", b, 5, 0, 7, false, 0, false},
		{"by the default", b, 5, 0, 7, true, 1, false},
		{"of the default", transport.Broadcast, 5, 1, 6, true, 2, false},
	} {
		got, err := table.Update(c.dst, func(now transport.OptionalTag, changes uint64) (transport.OptionalTag, bool) {
			if now != by(c.dst, c.now).OptionalTag || changes != c.changes {
				t.Errorf("%s: it is told %v, %d changes, want VID %d, %d", c.name, now, changes, c.now, c.changes)
			}
			return by(c.dst, c.next).OptionalTag, c.change
		})
		want := c.now
		if c.change && !c.fails {
			want = c.next
		}
		if got != c.after || got != table.Changes(c.dst) || errors.Is(err, vlan.ErrBadRoute) != c.fails ||
			table.Route(c.dst).Tag.VID != want {
			t.Errorf("%s: %d changes, %v, VID %d", c.name, got, err, table.Route(c.dst).Tag.VID)
		}
	}
	if r := table.Routes(); len(r) != 3 {
		t.Errorf("routes are %v, want 3", r)
	}
}

func TestTable_WithoutDefaultIsUntagged(t *testing.T) {
	table := newTable(t, by(a, 5))
	if got := table.Route(b); got != transport.Untagged {
		t.Errorf("to another: %v, want untagged", got)
	}
	table.Counter(b).Add(1, 60)
	want := []vlan.Sent{{Dst: a, VID: 5}, {Dst: transport.Broadcast, Frames: 1, Bytes: 60}}
	if got := table.Counts(); !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}

// A route that comes back to a VID goes on counting there, and so does one that was away; a sender
// that kept its counter over the change has not counted in vain.
func TestTable_CountsSurviveChanges(t *testing.T) {
	table := newTable(t, by(a, 1), by(transport.Broadcast, 9))
	kept := table.Counter(a)
	kept.Add(1, 100)
	for _, change := range []func() error{
		func() error { return table.Set(by(a, 2)) },
		func() error { return table.Set(by(a, 1)) },
		func() error { return table.Replace(nil) },
		func() error { return table.Replace([]vlan.Route{by(a, 1), by(b, 2)}) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		table.Counter(a).Add(1, 100)
	}
	if table.Counter(a) != kept {
		t.Errorf("VID 1 has a new counter")
	}
	kept.Add(1, 100)
	want := []vlan.Sent{
		{Dst: a, VID: 1, Frames: 4, Bytes: 400}, {Dst: a, VID: 2, Frames: 1, Bytes: 100}, {Dst: b, VID: 2},
		{Dst: transport.Broadcast, VID: 0, Frames: 1, Bytes: 100}, {Dst: transport.Broadcast, VID: 9},
	}
	if got := table.Counts(); !slices.Equal(got, want) {
		t.Errorf("counts\n%v, want\n%v", got, want)
	}
	perVID := []vlan.Sent{{VID: 0, Frames: 1, Bytes: 100}, {VID: 1, Frames: 4, Bytes: 400}, {VID: 2, Frames: 1, Bytes: 100}, {VID: 9}}
	if got := vlan.PerVID(want); !slices.Equal(got, perVID) {
		t.Errorf("per VID\n%v, want\n%v", got, perVID)
	}
}

// Whatever is wrong with one route, none of them comes into force, by Set and by Replace, and no
// table is made of them.
func TestTable_BadRoutesChangeNothing(t *testing.T) {
	for name, bad := range map[string]struct {
		routes []vlan.Route
		want   string
	}{
		"VID 0 chooses no VLAN":   {[]vlan.Route{by(b, 0)}, "02:00:00:00:00:02: VID 0 (want 1 to 4094)"},
		"VID 4095 is reserved":    {[]vlan.Route{by(b, 4095)}, "VID 4095 (want 1 to 4094)"},
		"PCP":                     {[]vlan.Route{{Dst: b, OptionalTag: transport.Tagged(transport.Tag{VID: 1, PCP: 8})}}, "PCP 8 (want 0 to 7)"},
		"zero MAC":                {[]vlan.Route{by(transport.MAC{}, 1)}, "00:00:00:00:00:00: no station's address"},
		"group":                   {[]vlan.Route{by(transport.MAC{3}, 1)}, "03:00:00:00:00:00: a group (want"},
		"untagged, and a tag":     {[]vlan.Route{{Dst: b, OptionalTag: transport.OptionalTag{Tag: transport.Tag{VID: 1}}}}, "untagged, and with the tag VID 1 PCP 0"},
		"a destination twice":     {[]vlan.Route{by(b, 1), by(b, 2)}, "02:00:00:00:00:02: given twice"},
		"the default twice":       {[]vlan.Route{by(transport.Broadcast, 1), by(transport.Broadcast, 1)}, "ff:ff:ff:ff:ff:ff: given twice"},
		"the good one comes last": {[]vlan.Route{by(b, 0), by(a, 7)}, "VID 0"},
	} {
		t.Run(name, func(t *testing.T) {
			bad.routes = append([]vlan.Route{by(station(9), 3)}, bad.routes...) // which is good
			table := newTable(t, by(a, 1))
			_, errNew := vlan.NewTable(bad.routes)
			for act, err := range map[string]error{"Set": table.Set(bad.routes...), "Replace": table.Replace(bad.routes), "NewTable": errNew} {
				if !errors.Is(err, vlan.ErrBadRoute) || !strings.Contains(err.Error(), bad.want) {
					t.Errorf("%s: %v, want ErrBadRoute: %s", act, err, bad.want)
				}
			}
			if got := table.Routes(); !slices.Equal(got, []vlan.Route{by(a, 1)}) {
				t.Errorf("routes now: %v", got)
			}
		})
	}
}

func TestTable_IsBounded(t *testing.T) {
	routes := make([]vlan.Route, vlan.MaxRoutes+1)
	for i := range routes {
		routes[i] = by(station(i), 1)
	}
	if _, err := vlan.NewTable(routes); !errors.Is(err, vlan.ErrBadRoute) || !strings.Contains(err.Error(), "want at most 4097") {
		t.Errorf("one route too many: %v", err)
	}
	table := newTable(t, routes[1:]...)
	if err := table.Set(routes[0]); !errors.Is(err, vlan.ErrBadRoute) {
		t.Errorf("one more: %v", err)
	}
	// Each of these replaces the one before, but their counts stay: those of the routes, and one
	// without a tag.
	for vid := 2; ; vid++ {
		for i := range routes {
			routes[i].Tag.VID = transport.VID(vid)
		}
		err := table.Replace(routes[1:])
		if vid*vlan.MaxRoutes+1 <= vlan.MaxCounts {
			if err != nil {
				t.Fatalf("VID %d: %v", vid, err)
			}
			continue
		}
		if !errors.Is(err, vlan.ErrBadRoute) || !strings.Contains(err.Error(), "(make a new table)") {
			t.Errorf("VID %d: %v", vid, err)
		}
		if counts := len(table.Counts()); counts != (vid-1)*vlan.MaxRoutes+1 || table.Routes()[0].Tag.VID != transport.VID(vid-1) {
			t.Errorf("VID %d: %d counts, and %v", vid, counts, table.Routes()[0])
		}
		return
	}
}

// Writers give all stations one VID, or one of their own another one, while readers look: no reader
// sees a VID that nobody set, and Routes sees no half of a change; no change and no count is lost.
func TestTable_ReadersAndWritersAtOnce(t *testing.T) {
	const stations, writers, readers, rounds = 64, 4, 4, 2000
	all := make([]vlan.Route, stations)
	for i := range all {
		all[i] = by(station(i), 1)
	}
	table := newTable(t, all...)
	var done atomic.Int32
	var writing, reading sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			defer done.Add(1)
			for round := range rounds {
				own, vid := station(w), transport.VID(2+(round+w)%7)
				if err := table.Set(by(own, vid), by(station(stations+w), vid)); err != nil {
					t.Error(err)
				}
				// Nobody else changes this one: it is there as it was set.
				if tag := table.Route(own).Tag; tag.VID != vid {
					t.Errorf("writer %d: VID %d is %d", w, vid, tag.VID)
				}
			}
		})
	}
	counted := make([]uint64, readers)
	for r := range readers {
		reading.Go(func() {
			for done.Load() < writers {
				routes := table.Routes() // of one moment
				vid := make(map[transport.MAC]transport.VID)
				for _, route := range routes {
					vid[route.Dst] = route.Tag.VID
				}
				for w := range writers {
					if other, ok := vid[station(stations+w)]; ok && other != vid[station(w)] {
						t.Errorf("writer %d: half of a change: VIDs %d and %d", w, vid[station(w)], other)
					}
				}
				for i := range stations {
					got := table.Route(station(i))
					tag, tagged := got.Tag, got.Tagged
					if !tagged || tag.VID < 1 || tag.VID > 8 || i >= writers && tag.VID != 1 {
						t.Errorf("to %d: %v %v", i, tag, tagged)
					}
					table.Counter(station(i)).Add(1, 64)
					counted[r]++
				}
			}
		})
	}
	writing.Wait()
	reading.Wait()
	var sent, want uint64
	for _, s := range table.Counts() {
		sent += s.Frames
	}
	for _, n := range counted {
		want += n
	}
	if sent != want {
		t.Errorf("%d frames counted, want %d", sent, want)
	}
}

func bigTable(t testing.TB, n int) *vlan.Table {
	routes := make([]vlan.Route, n)
	for i := range routes {
		routes[i] = by(station(i), transport.VID(1+i%4))
	}
	return newTable(t, routes...)
}

func TestTable_ReadersAllocateNothing(t *testing.T) {
	table, i := bigTable(t, 1024), 0
	if n := testing.AllocsPerRun(1000, func() {
		dst := station(i)
		_ = table.Route(dst)
		table.Counter(dst).Add(1, 64)
		i++
	}); n != 0 {
		t.Errorf("%v allocs, want 0", n)
	}
}

// What a look-up and a change of one route cost, and what they would with a Go map, which a change
// has to copy.
func BenchmarkTable(b *testing.B) {
	for _, n := range []int{16, 1024, 4096} {
		table := bigTable(b, n)
		routes := make(map[transport.MAC]vlan.Route)
		for _, r := range table.Routes() {
			routes[r.Dst] = r
		}
		dsts := make([]transport.MAC, 256)
		for i := range dsts {
			dsts[i] = station(i * 37 % n)
		}
		for _, c := range []struct {
			name string
			act  func(i int)
		}{
			{"Route", func(i int) { _ = table.Route(dsts[i&255]) }},
			{"RouteMap", func(i int) { _ = routes[dsts[i&255]] }},
			{"Set", func(i int) { _ = table.Set(by(dsts[i&255], transport.VID(1+i%5))) }},
			{"SetMap", func(i int) { maps.Clone(routes)[dsts[i&255]] = by(dsts[i&255], 1) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				i := 0
				for b.Loop() {
					c.act(i)
					i++
				}
			})
		}
	}
}

func ExampleTable() {
	table, err := vlan.NewTable([]vlan.Route{
		{Dst: transport.MAC{0x02, 0, 0, 0, 0, 2}, OptionalTag: transport.Tagged(transport.Tag{VID: 3})},
		{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 1})},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	to := transport.MAC{0x02, 0, 0, 0, 0, 2}
	fmt.Println(table.Route(to))

	// The path of VID 3 is full: take VID 4, from the next frame on.
	if err := table.Set(vlan.Route{Dst: to, OptionalTag: transport.Tagged(transport.Tag{VID: 4})}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(table.Route(to))

	// A mistake changes nothing.
	fmt.Println(table.Set(vlan.Route{Dst: to, OptionalTag: transport.Tagged(transport.Tag{VID: 4095})}))
	fmt.Println(table.Routes())
	// Output:
	// VID 3
	// VID 4
	// bad route to 02:00:00:00:00:02: VID 4095 (want 1 to 4094)
	// [02:00:00:00:00:02 by VID 4 PCP 0 ff:ff:ff:ff:ff:ff by VID 1 PCP 0]
}
