package vbft_test

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/sim/vbft"

	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// Node 0 changes its pair's VID after half a second, and its counterpart half a second later: in
// between all that node 0 sends floods.
func ExampleChange() {
	network, err := topology.FatTree(4, 4, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	network.SetRates(100*topology.Mbps, 100*topology.Mbps)
	c := &vbft.Change{
		Network: ether.Config{Topology: network, Seed: 1}, Old: 1, New: 2,
		Sender: 500 * time.Millisecond, Receiver: time.Second, Length: 1500 * time.Millisecond, Sample: 500 * time.Millisecond,
	}
	err = c.Run(nil, func(s vbft.ChangeSample) error {
		fmt.Printf("from %5v on: %2d MB received, flooding: %v\n", s.At, s.Total()/1e6, s.Flooded > 1000)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// from    0s on: 11 MB received, flooding: false
	// from 500ms on:  7 MB received, flooding: true
	// from    1s on: 16 MB received, flooding: false
}

// The networks and plans that the paper compares, and whether CG's pairs collide on them.
func ExampleCases() {
	topology, err := topology.FatTree(4, 4, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	cases, err := vbft.Cases(topology)
	if err != nil {
		fmt.Println(err)
		return
	}
	demand, err := traffic.Pattern("cg", 16)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range cases[1:4] {
		load, err := demand.Load(c.Topology, c.Plan.PairVID)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, worst := load.MaxLink()
		fmt.Printf("%-9s worst link at %.0f of its rate\n", c.Name, worst)
	}
	// Output:
	// tree      worst link at 3 of its rate
	// default   worst link at 3 of its rate
	// optimised worst link at 1 of its rate
}
