package ether_test

import (
	"fmt"
	"math"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/sim/ether"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Two pairs share the way over the first top switch; then one of them takes the second.
func Example() {
	network, err := topology.FatTree(2, 2, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	network.SetRates(100*topology.Mbps, 100*topology.Mbps)
	q := new(sim.Queue)
	n, err := ether.New(q, ether.Config{Topology: network, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	flows := []*ether.Flow{n.NewFlow(0, 2, nil), n.NewFlow(1, 3, nil)}
	for _, f := range flows {
		f.Send(math.MaxInt64)
	}
	megabytes := func() (sum int64) {
		for _, f := range flows {
			sum += f.Received()
		}
		return sum / 1e6
	}
	q.Run(monotime.At(time.Second))
	shared := megabytes()
	fmt.Println("one way: ", shared, "MB in a second")
	n.SetRoute(plan.PairOf(1, 3), 2)
	q.Run(monotime.At(2 * time.Second))
	fmt.Println("two ways:", megabytes()-shared, "MB in a second")
	// Output:
	// one way:  11 MB in a second
	// two ways: 24 MB in a second
}
