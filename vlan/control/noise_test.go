package control_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/internal/vlantest"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Traffic that fluctuates by 60 % around means that stay the same is not followed at each turn: pairs
// that have changed back and forth stay damped for longer than one quiet rest.
func TestControlInNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(0, 5))
	top := vlantest.Network(t, "vbft:4x4x4")
	p := vlantest.RandomPlan(top, 0)
	p.Pairs = nil
	for node := range p.Nodes {
		p.Nodes[node].VID, p.Nodes[node].Priority = p.VIDs[node%len(p.VIDs)], 0
	}
	means := vlantest.RandomTraffic(16, 60, 0)
	for i := range means {
		means[i].Rate *= 3
	}
	m := newModel(top, p, control.ControllerConfig{})
	changes := 0
	for range 4000 {
		wanted := append(means[:0:0], means...)
		for k := range wanted {
			wanted[k].Rate *= topology.Rate(1 + 0.6*(2*r.Float64()-1))
		}
		m.wants(wanted)
		m.run(period)
		changes += len(m.decide())
	}
	t.Logf("%d changes in 4,000 periods", changes)
	if changes > 850 { // 1045 where one quiet rest ends all damping
		t.Errorf("%d changes, want 850 at most", changes)
	}
}
