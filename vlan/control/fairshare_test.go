package control_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Flows share places by the definition of max-min fairness.
func TestFairShareAgreesWithNaive(t *testing.T) {
	for _, seed := range vlantest.Seeds(200) {
		r := rand.New(rand.NewPCG(seed, 8))
		top := vlantest.Network(t, "vbft:4x4x4")
		plan := vlantest.RandomPlan(top, seed)
		want := someTraffic(r, len(top.Hosts))
		got, naive := control.FairShare(top, plan, want), maxMin(top, plan, want)
		for i := range got {
			if math.Abs(got[i]-naive[i]) > 1e-6*float64(topology.Gbps) {
				t.Fatalf("seed %d: flow %v gets %v, want %v", seed, want[i], got[i], naive[i])
			}
		}
	}
}
