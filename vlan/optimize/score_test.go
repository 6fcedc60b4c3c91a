package optimize

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// The table of all paths is bounded: one hop more is refused, before it is kept.
func TestPathTableIsBounded(t *testing.T) {
	network, err := topology.FatTree(3, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	demand := traffic.Matrix{{From: 0, To: 1, Rate: 1e6}, {From: 0, To: 2, Rate: 1e6}, {From: 1, To: 2, Rate: 1e6}}
	p, err := newProblem(network, demand, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := topology.NewPaths(network)
	if err != nil {
		t.Fatal(err)
	}
	const hops = 3 * 2 * 2 // pairs, VIDs, up and down
	if err := p.connect(paths, Options{}, hops); err != nil {
		t.Errorf("%d hops: %v", hops, err)
	}
	if err := p.connect(paths, Options{}, hops-1); !errors.Is(err, traffic.ErrInvalid) {
		t.Errorf("a hop too many: %v", err)
	}
}

// Pairs that keep their VID have no table each: a network may have hundreds of VIDs and hundreds of
// thousands of pairs.
func TestPairsThatKeepAChoiceShareIt(t *testing.T) {
	network, err := topology.FatTree(2, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	demand, err := traffic.Pattern("all", 8)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(plan.Pair) bool { return true }
	p, err := newProblem(network, demand, nil, Options{Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	tables := make(map[*[]int32]bool)
	for i, d := range p.pairs {
		tables[&d.paths[0]] = true
		for c, path := range d.paths {
			if (path != nil) != (int32(c) == d.start) {
				t.Errorf("pair %d, which keeps choice %d: choice %d is %v", i, d.start, c, path)
			}
		}
	}
	if len(p.pairs) != 16 || len(tables) != 2 {
		t.Errorf("%d pairs with %d tables, want 16 with 2: one for each VID", len(p.pairs), len(tables))
	}
}

// Plans are compared by the worst link first, whatever its utilisation; by the cost where the worst
// links are equal but for rounding; and then by how many pairs change.
func TestBetter(t *testing.T) {
	p := &problem{penalty: 1, still: 1e-9}
	for _, worst := range []float64{1e-6, 1, 1e6} {
		for _, c := range []struct {
			what string
			a, b score
			want bool
		}{
			{"a better worst link at any cost", score{worst * 0.999, 5, 5}, score{worst, 1, 1}, true},
			{"a worse worst link", score{worst, 1, 1}, score{worst * 0.999, 5, 5}, false},
			{"the same but for rounding, and less cost", score{worst * (1 + 1e-13), 1, 0}, score{worst, 2, 0}, true},
			{"the same but for rounding, and more cost", score{worst * (1 - 1e-13), 2, 0}, score{worst, 1, 0}, false},
			{"changes cost", score{worst, 1, 2}, score{worst, 2, 0}, false},
			{"fewer changes at one cost", score{worst, 2, 0}, score{worst, 1, 1}, true},
			{"more changes at one cost", score{worst, 1, 1}, score{worst, 2, 0}, false},
			{"the same", score{worst, 1, 1}, score{worst, 1, 1}, false},
		} {
			if got := p.better(c.a, c.b); got != c.want {
				t.Errorf("worst %g: %s: %v", worst, c.what, got)
			}
		}
	}
}
