package vlan_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rawlane/rawlane/vlan"
)

// someTraffic is a few flows of each node, of all sizes up to what a cable carries.
func someTraffic(r *rand.Rand, nodes int) (t vlan.Traffic) {
	for from := range nodes {
		for range 1 + r.IntN(2) {
			if to := r.IntN(nodes); to != from {
				t = append(t, vlan.Flow{From: from, To: to, Rate: vlan.Rate(1+r.IntN(10)) * 100 * vlan.Mbps})
			}
		}
	}
	return t.Normalise()
}

func TestControlScratch(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		top := network(t, "vbft:4x4x4")
		m := newModel(top, start(top, seed), vlan.ControlConfig{})
		m.wants(someTraffic(r, len(top.Hosts)))
		natural := m.natural()
		worst := func() float64 { return worstOf(top, natural, m.plan) }
		first := worst()
		_, ideal, _ := vlan.Optimize(top, natural, m.plan, vlan.OptimizeOptions{})
		changes, last, backs := 0, 0, 0
		bad := 0
		w := []float64{first}
		for k := range 200 {
			m.run(period)
			d := m.decide()
			if len(d) > 0 {
				changes += len(d)
				last = k
				if d[0].Reason == vlan.TakeBack {
					backs++
				}
			}
			w = append(w, worst())
			if n := len(w); n > 2 && w[n-2] > w[n-3]*1.001 && w[n-1] > w[n-3]*1.001 {
				bad++
				t.Logf("  seed %d at %d: %v", seed, k, w[n-3:])
			}
		}
		t.Logf("seed %d: worst %.2f -> %.2f (best %.2f, %d changes), %d changes, the last in period %d, %d taken back, bad %d", seed, first, worst(), ideal.After.Worst, len(ideal.Changes), changes, last, backs, bad)
	}
}
