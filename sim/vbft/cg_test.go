package vbft

import (
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

func protoPlan(t *vlan.Topology) *vlan.Plan {
	var macs []transport.MAC
	for i := range t.Hosts {
		macs = append(macs, transport.MAC{2, 0, 0, 0, 0, byte(i)})
	}
	var vids []transport.VID
	for _, v := range t.VLANs {
		vids = append(vids, v.VID)
	}
	p, err := vlan.Cyclic(macs, vids)
	if err != nil {
		panic(err)
	}
	return p
}

func TestProtoCG(t *testing.T) {
	opt := map[vlan.Pair]transport.VID{{1, 4}: 2, {2, 8}: 3, {3, 12}: 4, {6, 9}: 4, {7, 13}: 3, {11, 14}: 2}
	for _, queue := range []int{32 << 10, 64 << 10, 96 << 10, 128 << 10} {
		for _, seed := range []uint64{1, 2} {
			for _, window := range []int{128 << 10} {
				var flat time.Duration
				for _, c := range []struct {
					name, topo string
					o          int
				}{{"flat", "flat:16", 0}, {"tree", "tree:4x4", 0}, {"default", "vbft:4x4x4", 0}, {"optimised", "vbft:4x4x4", 1}} {
					topo, err := vlan.ParseTopology(c.topo)
					if err != nil {
						t.Fatal(err)
					}
					cg := CG{Network: ether.Config{Topology: topo, Seed: seed, Queue: queue, Window: window}, Plan: protoPlan(topo), Class: ClassB, Iterations: 15}
					if c.o == 1 {
						cg.Plan.Pairs = opt
					}
					if c.o == 2 {
						cg.Reroute = opt
					}
					start := time.Now()
					r, err := cg.Run()
					if err != nil {
						t.Fatal(err)
					}
					if flat == 0 {
						flat = r.Elapsed
					}
					fmt.Printf("s %d q %d w %d %-10s %v  %.2f  timeouts %d resent %d dropped %d  (%v, %d events)\n", seed, queue, window, c.name, r.Elapsed/15*75, float64(flat)/float64(r.Elapsed), r.Flows.Timeouts, r.Flows.Resent, r.Network.Dropped, time.Since(start).Round(time.Millisecond), r.Events)
				}
			}
		}
	}
}
