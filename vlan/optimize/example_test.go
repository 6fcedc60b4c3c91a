package optimize_test

import (
	"fmt"

	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

func ExamplePlan() {
	topology, _ := topology.Parse("vbft:4x4x4")
	demand, _ := traffic.Pattern("cg16", len(topology.Hosts))
	_, r, err := optimize.Plan(topology, demand, nil, optimize.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range r.Before.Collisions() {
		if !l.Hop.Back { // the way back is as crowded
			fmt.Println(topology.LinkName(l.Hop.Link), "is shared by", l.Pairs)
		}
	}
	for _, c := range r.Changes {
		fmt.Println(c)
	}
	fmt.Printf("worst link %.1f -> %.1f: %v\n", r.Before.Worst, r.After.Worst, r.Stopped)
	// Output:
	// leaf3-top3 is shared by [3-12 7-13 11-14]
	// leaf2-top2 is shared by [2-8 6-9]
	// 3-12: VID 4 -> 1
	// 6-9: VID 3 -> 1
	// 7-13: VID 4 -> 3
	// worst link 3.0 -> 1.0: proved to be the best
}
