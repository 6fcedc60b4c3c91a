package control

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// A change is explained by the worst link that the pair loads before and after it, the first of
// equals; if its VID does not connect it, by that.
func TestExplain(t *testing.T) {
	network, err := topology.Parse("vbft:2x2x2")
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{topology: network}
	pair, other := plan.Pair{A: 0, B: 2}, plan.Pair{A: 1, B: 3}
	use := func(link int, u float64, pairs ...plan.Pair) optimize.LinkUse {
		return optimize.LinkUse{Hop: topology.Hop{Link: link}, Utilisation: u, Pairs: pairs}
	}
	name := func(link int) string { return network.HopName(topology.Hop{Link: link}) }
	after := []optimize.LinkUse{use(0, 0.1, pair), use(1, 0.3, pair), use(2, 0.4, other)}
	for _, before := range []struct {
		links []optimize.LinkUse
		want  string
	}{
		{[]optimize.LinkUse{use(3, 0.9, other)}, "VID 1 does not connect it; expected 0.30 of the worst link on its way"},
		{nil, "VID 1 does not connect it; expected 0.30 of the worst link on its way"},
		{[]optimize.LinkUse{use(0, 0.5, pair), use(1, 0.8, pair, other), use(2, 0.8, pair), use(3, 0.9, other)},
			"link " + name(1) + " was at 0.80 of its rate, pairs 0-2 and 1-3 shared it; expected 0.30"},
		{[]optimize.LinkUse{use(2, 0.6, pair), use(3, 0.5, pair, other)},
			"link " + name(2) + " was at 0.60 of its rate, 0-2 alone; expected 0.30"},
	} {
		change := plan.Change{Pair: pair, From: 1, To: 2}
		now := monotime.At(time.Hour)
		r := optimize.Report{Changes: []plan.Change{change}}
		r.Before.Links, r.After.Links = before.links, after
		want := []Decision{{At: now, Change: change, Reason: Relieve, Why: before.want}}
		if got := c.explain(now, &r); !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// The pairs of a link are named in words: one alone, some, and some of many.
func TestSharedNamesPairs(t *testing.T) {
	var pairs []plan.Pair
	for b := range 8 {
		pairs = append(pairs, plan.Pair{A: 0, B: b + 1})
	}
	for n, want := range map[int]string{1: "0-1 alone", 2: "pairs 0-1 and 0-2 shared it", 3: "pairs 0-1, 0-2 and 0-3 shared it",
		6: "pairs 0-1, 0-2, 0-3, 0-4, 0-5 and 0-6 shared it",
		7: "pairs 0-1, 0-2, 0-3, 0-4, 0-5, 0-6 and 1 more shared it", 8: "pairs 0-1, 0-2, 0-3, 0-4, 0-5, 0-6 and 2 more shared it"} {
		if got := shared(pairs[:n]); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
