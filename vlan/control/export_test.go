package control

import (
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// FairShare is what flows get of links and of the cables of hosts.
func FairShare(t *topology.Topology, plan *plan.Plan, want traffic.Matrix) []float64 {
	paths, err := topology.NewPaths(t)
	if err != nil {
		panic(err)
	}
	var capacity []float64
	for h := range 2 * len(t.Links) {
		capacity = append(capacity, float64(t.Links[h/2].Rate))
	}
	for _, h := range t.Hosts {
		capacity = append(capacity, float64(h.Rate), float64(h.Rate))
	}
	flows := make([]sharer, len(want))
	for i, f := range want {
		path, _ := paths.Append(nil, f.From, f.To, plan.PairVID(f.From, f.To))
		flows[i].most = float64(f.Rate)
		for _, h := range path {
			flows[i].places = append(flows[i].places, h.Index())
		}
		flows[i].places = append(flows[i].places, 2*len(t.Links)+2*f.From, 2*len(t.Links)+2*f.To+1)
	}
	return fairShare(flows, capacity)
}

// MaxHold bounds the wait of a path that flaps, in times of WaitToRestore.
const MaxHold = maxHold
