package vlan

import (
	"errors"
	"maps"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

func dest(i int) transport.MAC { return transport.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)} }

func byVID(dst transport.MAC, vid transport.VID) Route {
	return Route{Dst: dst, OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
}

// A table takes 262,144 counts and not one more, the default's among them.
func TestTable_TakesAsManyCountsAsItSays(t *testing.T) {
	const most = 262144
	if MaxCounts != most {
		t.Fatalf("MaxCounts is %d: the documents say %d", MaxCounts, most)
	}
	table, err := NewTable([]Route{byVID(transport.Broadcast, 1)})
	if err != nil {
		t.Fatal(err)
	}
	const stations, vids = 4096, 64
	for vid := range vids {
		var routes []Route
		for i := range stations {
			if vid == vids-1 && i == stations-1 {
				break // the default has a count of its own
			}
			routes = append(routes, byVID(dest(i), transport.VID(vid+1)))
		}
		if err := table.Set(routes...); err != nil {
			t.Fatal(err)
		}
	}
	if table.counts != most {
		t.Fatalf("%d counts, want %d", table.counts, most)
	}
	full := table.Routes()
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrBadRoute) || table.counts != most {
			t.Errorf("%s: %v, %d counts", what, err, table.counts)
		}
	}
	refused("one more", table.Set(byVID(dest(0), vids+1)))
	refused("the default becomes untagged", table.Replace([]Route{byVID(dest(0), 1)}))
	if err := table.Replace(full); err != nil {
		t.Errorf("what it has: %v", err)
	}
	if err := table.Set(byVID(dest(0), 1), byVID(dest(1), 2)); err != nil {
		t.Errorf("VIDs that it has had: %v", err)
	}
}

// A table that has room for exactly as many counts as are asked for takes them, where its default
// was untagged already.
func TestTable_DefaultIsCountedOnce(t *testing.T) {
	table, err := NewTable(nil)
	if err != nil {
		t.Fatal(err)
	}
	table.counts = MaxCounts - 1
	if err := table.Replace([]Route{byVID(dest(0), 1)}); err != nil {
		t.Errorf("the last count: %v", err)
	}
	if err := table.Replace([]Route{byVID(dest(0), 1)}); err != nil {
		t.Errorf("again: %v", err)
	}
}

// Senders read the map of destinations while others are added: it is never changed, and what is
// added at once is added to one copy.
func TestTable_DestinationsAreAddedToACopy(t *testing.T) {
	table, err := NewTable([]Route{byVID(dest(0), 1)})
	if err != nil {
		t.Fatal(err)
	}
	old := table.known.Load()
	before := maps.Clone(*old)
	added := table.Destinations(dest(0), dest(1), dest(2), dest(1))
	if !maps.Equal(*old, before) {
		t.Error("the map that senders read was changed")
	}
	if n := len(*table.known.Load()); n != 3 || added[1] == added[2] || added[1] != added[3] || added[0] != before[dest(0)] {
		t.Errorf("%d destinations, %v", n, added)
	}
	for range table.all { // a loop may end early
		break
	}
}
