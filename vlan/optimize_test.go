package vlan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rawlane/rawlane/vlan"
)

func pattern(t testing.TB, name string, nodes int) vlan.Traffic {
	t.Helper()
	traffic, err := vlan.Pattern(name, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return traffic
}

func network(t testing.TB, spec string) *vlan.Topology {
	t.Helper()
	topology, err := vlan.ParseTopology(spec)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func TestVFREC_2_4_CGHasATableWithoutCollisions(t *testing.T) {
	topology := network(t, "vbft:4x4x4")
	_, r, err := vlan.Optimize(topology, pattern(t, "cg16", 16), nil, vlan.OptimizeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var before []string
	for _, l := range r.Before.Collisions() {
		if !l.Hop.Back {
			before = append(before, fmt.Sprint(topology.HopName(l.Hop), l.Pairs))
		}
	}
	if got, want := fmt.Sprint(before), "[leaf3>top3[3-12 7-13 11-14] leaf2>top2[2-8 6-9]]"; got != want {
		t.Errorf("at first %s collide, want %s", got, want)
	}
	if after := r.After.Collisions(); len(after) > 0 {
		t.Errorf("after: %v, want no collision", after)
	}
	if r.After.Worst != 1 || r.LowerBound != 1 || r.Stopped != vlan.Optimal || len(r.Changes) != 3 {
		t.Errorf("worst link %v (bound %v, %v), %d changes; want 1 (1, proved), 3", r.After.Worst, r.LowerBound, r.Stopped, len(r.Changes))
	}
}

func TestScratch(t *testing.T) {
	for _, c := range []struct{ spec, pattern string }{
		{"vbft:32x32x32", "random:1"}, {"vbft:32x32x32", "shift:512"}, {"vbft:32x32x32", "bisection"}, {"vbft:32x32x32", "cg"}, {"vbft:16x8x16", "all"},
		{"vbft:8x8x8", "random:3"}, {"vbft:4x4x4", "all"},{"vbft:16x8x16", "random:3"},
	} {
		top := network(t, c.spec)
		_, r, err := vlan.OptimizeFast(top, pattern(t, c.pattern, len(top.Hosts)), nil, vlan.OptimizeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s %s: %.3f -> %.3f bound %.3f, squares %.4g -> %.4g, changes %d, tried %d", c.spec, c.pattern, r.Before.Worst, r.After.Worst, r.LowerBound, r.Before.Squares, r.After.Squares, len(r.Changes), r.Tried)
	}
}

func TestOptimizeAgreesWithExact(t *testing.T) {
	equal, worse := 0, 0.0
	const cases = 400
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 0))
		top, demand := smallCase(r)
		_, exact, err := vlan.OptimizeExact(top, demand, nil, vlan.OptimizeOptions{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, fast, err := vlan.OptimizeFast(top, demand, nil, vlan.OptimizeOptions{Effort: 20000})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if fast.After.Worst < exact.After.Worst*(1-1e-9) || exact.After.Worst < exact.LowerBound*(1-1e-9) {
			t.Errorf("seed %d: bound %v, exact %v, fast %v", seed, exact.LowerBound, exact.After.Worst, fast.After.Worst)
		}
		if math.Abs(fast.After.Worst-exact.After.Worst) < 1e-9*exact.After.Worst {
			equal++
		} else {
			worse = max(worse, fast.After.Worst/exact.After.Worst)
			t.Logf("seed %d: bound %v, exact %v, fast %v, pairs %d", seed, exact.LowerBound, exact.After.Worst, fast.After.Worst, len(demand))
		}
	}
	t.Logf("%d of %d equal, else at most %.3f times", equal, cases, worse)
}

// smallCase returns a fat tree or any network, and a few flows: equal ones, different ones, one way or both.
func smallCase(r *rand.Rand) (*vlan.Topology, vlan.Traffic) {
	var top *vlan.Topology
	switch r.IntN(3) {
	case 0:
		top, _ = vlan.FatTree(2+r.IntN(3), 2+r.IntN(3), 2+r.IntN(3))
	case 1:
		top, _ = vlan.FatTreeOf(vlan.Level{Down: 2, Up: 1}, vlan.Level{Down: 2, Up: 2}, vlan.Level{Down: 2, Up: 2})
	default:
		top = randomNetwork(r, 3+r.IntN(5), r.IntN(5), 2+r.IntN(3))
	}
	var demand vlan.Traffic
	kind := r.IntN(3)
	for range 1 + r.IntN(9) {
		a, b := r.IntN(len(top.Hosts)), r.IntN(len(top.Hosts))
		if a == b {
			continue
		}
		rate := vlan.Gbps
		if kind > 0 {
			rate = vlan.Rate(1+r.IntN(9)) * 100 * vlan.Mbps
		}
		demand = append(demand, vlan.Flow{From: a, To: b, Rate: rate})
		if kind < 2 {
			demand = append(demand, vlan.Flow{From: b, To: a, Rate: rate})
		}
	}
	return top, demand.Normalise()
}

func BenchmarkOptimize(b *testing.B) {
	for _, c := range []struct{ name, spec, pattern string }{
		{"permutation", "vbft:32x32x32", "random:1"},
	} {
		b.Run(c.name, func(b *testing.B) {
			top := network(b, c.spec)
			demand := pattern(b, c.pattern, len(top.Hosts))
			for b.Loop() {
				if _, _, err := vlan.Optimize(top, demand, nil, vlan.OptimizeOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
