package mcdtest_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpen_ConfigReachesNodesAndLinks(t *testing.T) {
	faults := map[[2]int]*fault.Link{}
	eps := mcdtest.Open(t, 3, mcdtest.Config{
		NICs:      2,
		Fabric:    fabric.Config{MTU: 500},
		Endpoint:  mcd.Config{Cluster: 7},
		Customize: func(node mcd.NodeID, cfg *mcd.Config) { cfg.Cluster += mcd.ClusterID(node) / 2 },
		Wrap: func(node mcd.NodeID, nic int, l transport.Link) transport.Link {
			f, err := fault.New(l, rand.New(rand.NewPCG(1, 2)), fault.Config{})
			if err != nil {
				t.Fatal(err)
			}
			faults[[2]int{int(node), nic}] = f
			return f
		},
	})
	if len(faults) != 6 {
		t.Errorf("%d links were wrapped, want 6", len(faults))
	}
	for k, e := range eps {
		if e.Node() != mcd.NodeID(k) || e.NICs() != 2 || e.MaxPayload() != 500-mcd.HeaderLen || len(e.Nodes()) != 3 {
			t.Errorf("node %d: number %d, %d NICs, %d bytes, table %v", k, e.Node(), e.NICs(), e.MaxPayload(), e.Nodes())
		}
	}
	if a, b, c := eps[0].Cluster(), eps[1].Cluster(), eps[2].Cluster(); a != 7 || b != 7 || c != 8 {
		t.Errorf("clusters %d, %d, %d: want 7, 7, 8", a, b, c)
	}
	for nic := range 2 {
		path := mcd.Path{Node: 1, NIC: nic}
		if _, err := eps[0].Ping(context.Background(), path, mcd.ProbeOptions{}); err != nil {
			t.Errorf("%v: %v", path, err)
		}
	}
}

func ExampleStart() {
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()
	fmt.Println(len(eps), "nodes; node 1 has number", eps[1].Node())
	// Output: 2 nodes; node 1 has number 1
}
