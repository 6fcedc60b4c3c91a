package vbft

import (
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/vlan"
)

func TestDebug(t *testing.T) {
	for _, n := range []string{"tree:4x4", "vbft:4x4x4"} {
		topo, _ := vlan.ParseTopology(n)
		fmt.Println(n)
		cg := CG{Network: ether.Config{Topology: topo, Seed: 1, Queue: 98304}, Plan: protoPlan(topo), Class: ClassB, Iterations: 15}
		r, _ := cg.Run()
		fmt.Println(r.Elapsed)
	}
}
