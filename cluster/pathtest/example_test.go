package pathtest_test

import (
	"context"
	"fmt"

	"github.com/rawlane/rawlane/cluster/pathtest"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// Node 1's switch port is in VLAN 1 alone: frames to it by VID 2 do not arrive.
func ExampleCheck() {
	f, _ := fabric.New(fabric.Config{})
	sw := f.AddSwitch("")
	var eps []*mcd.Endpoint
	var nodes []mcd.Node
	var links []transport.Link
	for k, port := range []fabric.Port{{}, fabric.Trunk(1)} {
		l, _ := f.Attach(sw, fabric.Station{Port: port})
		links = append(links, l)
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}})
	}
	for k, l := range links {
		ep, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes}, l)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer ep.Close()
		eps = append(eps, ep)
	}
	tags := []transport.OptionalTag{transport.Untagged, transport.Tagged(transport.Tag{VID: 2})}
	faults, err := pathtest.Check(context.Background(), eps[0], 0, tags, pathtest.Options{})
	for _, f := range faults {
		fmt.Println(f.Kind, "between", f.From, "and", f.To, "by", f.By)
	}
	fmt.Println(err)
	// Output:
	// black hole between 0 and 1 by VID 2
	// <nil>
}
