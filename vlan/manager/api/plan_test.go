package api

import (
	"encoding/json"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Plans are equal that have one JSON, and to compare them takes no memory: a group of thousands does
// so for each of its nodes.
func TestPlan_Equal(t *testing.T) {
	sample := func(change func(*plan.Plan)) *Plan {
		p := plan.Plan{
			Topology: "vbft:2x2x2", VIDs: []transport.VID{7, 8}, PCP: 1,
			Nodes: []plan.Node{{Name: "a", MAC: transport.MAC{2}, VID: 7}, {MAC: transport.MAC{4}, VID: 8, Priority: 1}},
			Pairs: map[plan.Pair]transport.VID{{A: 0, B: 1}: 8},
		}
		change(&p)
		return &Plan{p}
	}
	plans := []*Plan{nil}
	for _, change := range []func(*plan.Plan){
		func(*plan.Plan) {},
		func(p *plan.Plan) { p.Topology = "" },
		func(p *plan.Plan) { p.VIDs[1] = 9 },
		func(p *plan.Plan) { p.PCP = 0 },
		func(p *plan.Plan) { p.Nodes[0].Name = "" },
		func(p *plan.Plan) { p.Nodes[0].MAC = transport.MAC{6} },
		func(p *plan.Plan) { p.Nodes[1].VID = 7 },
		func(p *plan.Plan) { p.Nodes[1].Priority = 2 },
		func(p *plan.Plan) { p.Nodes = p.Nodes[:1] },
		func(p *plan.Plan) { p.Pairs = nil },
		func(p *plan.Plan) { p.Pairs = map[plan.Pair]transport.VID{{A: 0, B: 1}: 7} },
	} {
		plans = append(plans, sample(change))
	}
	for i, a := range plans {
		for k, b := range plans {
			x, errX := json.Marshal(a)
			y, errY := json.Marshal(b)
			if errX != nil || errY != nil || (string(x) == string(y)) != (i == k) || a.Equal(b) != (i == k) {
				t.Errorf("%s and %s: equal: %v", x, y, a.Equal(b))
			}
		}
	}
	same := sample(func(p *plan.Plan) { p.Pairs = map[plan.Pair]transport.VID{{A: 0, B: 1}: 8} })
	if !same.Equal(plans[1]) || !plans[1].Equal(same) {
		t.Error("equal plans are not")
	}
	if n := testing.AllocsPerRun(10, func() { same.Equal(plans[1]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
