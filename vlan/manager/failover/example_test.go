package failover_test

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/failover"

	"github.com/rawlane/rawlane/vlan/control"
)

// Two nodes on two switches, with a cable for each of the VIDs 1 and 2 between these. The first
// cable is cut.
func Example() {
	f, _ := fabric.New(fabric.Config{})
	left, right := f.AddSwitch("left"), f.AddSwitch("right")
	first, _ := f.Connect(left, right, fabric.Trunk(1))
	_, _ = f.Connect(left, right, fabric.Trunk(2))
	a, _ := f.Attach(left, fabric.Station{})
	b, _ := f.Attach(right, fabric.Station{})
	nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{a.MAC()}}, {ID: 1, MACs: []transport.MAC{b.MAC()}}}

	moved := make(chan failover.Move, 2)
	for k, link := range []*fabric.Link{a, b} {
		table, _ := vlan.NewTable([]vlan.Route{{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 1})}})
		ep, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Router: table}, link)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer ep.Close()
		d, err := failover.Start(ep, failover.Config{
			Failover: control.FailoverConfig{VIDs: []transport.VID{1, 2}, Probe: 20 * time.Millisecond},
			Routes:   failover.Table(table),
			OnMove:   func(m failover.Move) { moved <- m },
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer d.Close()
	}
	first.SetUp(false)
	for range 2 { // both ends
		m := <-moved
		fmt.Printf("VID %d -> VID %d\n", m.From, m.To)
	}
	// Output:
	// VID 1 -> VID 2
	// VID 1 -> VID 2
}
