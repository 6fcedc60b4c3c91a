package vlan_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// naiveTable is a table written down as its documentation reads: slices searched from the end, all
// copied.
type naiveTable struct {
	routes []vlan.Route
	counts []vlan.Sent
}

func (n *naiveTable) set(routes []vlan.Route) {
	for _, r := range routes {
		n.routes = slices.DeleteFunc(n.routes, func(old vlan.Route) bool { return old.Dst == r.Dst })
		n.routes = append(n.routes, r)
	}
	for _, r := range n.routes {
		n.count(r.Dst, r.Tag.VID, 0)
	}
	if _, ok := n.own(transport.Broadcast); !ok {
		n.count(transport.Broadcast, 0, 0)
	}
}

func (n *naiveTable) own(dst transport.MAC) (vlan.Route, bool) {
	for _, r := range slices.Backward(n.routes) {
		if r.Dst == dst {
			return r, true
		}
	}
	return vlan.Route{}, false
}

func (n *naiveTable) route(dst transport.MAC) vlan.Route {
	for _, key := range []transport.MAC{dst, transport.Broadcast} {
		if r, ok := n.own(key); ok {
			return r
		}
	}
	return vlan.Route{Dst: transport.Broadcast}
}

func (n *naiveTable) count(dst transport.MAC, vid transport.VID, bytes int) {
	i := slices.IndexFunc(n.counts, func(s vlan.Sent) bool { return s.Dst == dst && s.VID == vid })
	if i < 0 {
		i = len(n.counts)
		n.counts = append(n.counts, vlan.Sent{Dst: dst, VID: vid})
	}
	if bytes > 0 {
		n.counts[i].Frames++
		n.counts[i].Bytes += uint64(bytes)
	}
}

func (n *naiveTable) sorted() ([]vlan.Route, []vlan.Sent) {
	routes, counts := slices.Clone(n.routes), slices.Clone(n.counts)
	slices.SortFunc(routes, func(a, b vlan.Route) int { return strings.Compare(a.Dst.String(), b.Dst.String()) })
	slices.SortFunc(counts, func(a, b vlan.Sent) int {
		return cmp.Or(strings.Compare(a.Dst.String(), b.Dst.String()), cmp.Compare(a.VID, b.VID))
	})
	return routes, counts
}

// randomRoutes has each destination once; stations are few, so that things meet.
func randomRoutes(rng *rand.Rand, stations int) (routes []vlan.Route) {
	for _, i := range rng.Perm(stations + 1)[:rng.IntN(min(stations, 20)+1)] {
		r := by(station(i), transport.VID(1+rng.IntN(4)))
		r.Tag.PCP = transport.PCP(rng.IntN(8))
		if i == 0 {
			r.Dst = transport.Broadcast
		}
		if rng.IntN(5) == 0 {
			r.OptionalTag = transport.Untagged
		}
		routes = append(routes, r)
	}
	return routes
}

// 100 random tables, 300 random operations on each, and a frame to anywhere after each: the table
// and the naive one agree on every route and every count.
func TestTable_AgreesWithNaive(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		stations := 1 + rng.IntN(200)
		first := randomRoutes(rng, stations)
		table, naive := newTable(t, first...), &naiveTable{}
		naive.set(first)
		for op := range 300 {
			routes := randomRoutes(rng, stations)
			var err error
			if rng.IntN(20) == 0 {
				err = table.Replace(routes)
				naive.routes = nil
			} else {
				err = table.Set(routes...)
			}
			naive.set(routes)
			if err != nil {
				t.Fatalf("seed %d, operation %d: %v", seed, op, err)
			}
			dst := station(1 + rng.IntN(stations+5))
			want := naive.route(dst)
			if got := table.Route(dst); got != want.OptionalTag || got != held(table, dst) {
				t.Fatalf("seed %d, operation %d: to %v: %v, want %v", seed, op, dst, got, want)
			}
			bytes := 60 + rng.IntN(1000)
			table.Counter(dst).Add(1, bytes)
			naive.count(want.Dst, want.Tag.VID, bytes)
		}
		routes, counts := naive.sorted()
		if got := table.Routes(); !slices.Equal(got, routes) {
			t.Fatalf("seed %d: routes\n%v, want\n%v", seed, got, routes)
		}
		if got := table.Counts(); !slices.Equal(got, counts) {
			t.Fatalf("seed %d: counts\n%v, want\n%v", seed, got, counts)
		}
	}
}
