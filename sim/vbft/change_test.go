package vbft

import (
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/vlan"
)

func TestProto(t *testing.T) {
	topo, _ := vlan.FatTree(4, 4, 4)
	c := Change{Network: ether.Config{Topology: topo, Seed: 1}, From: 1, To: 2, Sender: 5 * time.Second, Receiver: 10 * time.Second, Length: 15 * time.Second, Sample: time.Second}
	start := time.Now()
	r, err := c.Run()
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	for _, s := range r.Samples {
		fmt.Printf("%4v %6.1f MB/s  ", s.At, float64(s.Total())/1e6)
		for _, b := range s.Received {
			fmt.Printf("%6.1f", float64(b)/1e6)
		}
		fmt.Println("  flooded", s.Flooded, "dropped", s.Dropped)
	}
	fmt.Printf("%+v\n%d events, %v, %.0f ns/event\n", r.Network, r.Events, took, float64(took)/float64(r.Events))
}
