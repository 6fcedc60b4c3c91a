package mcd_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/vlan"
)

// exampleNodes opens two nodes on a switch, of which the first sends by a table.
func exampleNodes() (table *vlan.Table, eps [2]*mcd.Endpoint) {
	links, err := fabric.Links(2)
	if err != nil {
		panic(err)
	}
	nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{links[0].MAC()}}, {ID: 1, MACs: []transport.MAC{links[1].MAC()}}}
	if table, err = vlan.NewTable([]vlan.Route{{Dst: links[1].MAC(), OptionalTag: transport.Tagged(transport.Tag{VID: 1})}}); err != nil {
		panic(err)
	}
	for k, l := range links {
		if eps[k], err = mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Router: table}, l); err != nil {
			panic(err)
		}
	}
	return table, eps
}

// Is node 1 alive by VID 5? Nothing need run there but its endpoint.
func ExampleEndpoint_Ping() {
	_, eps := exampleNodes()
	defer eps[0].Close()
	defer eps[1].Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	reply, err := eps[0].Ping(ctx, mcd.Path{Node: 1, OptionalTag: transport.Tagged(transport.Tag{VID: 5})}, mcd.ProbeOptions{Size: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("node %d replied; it received %v\n", reply.From, reply.PeerReceivedTag)
	// Output: node 1 replied; it received VID 5
}

// A route is changed, and no message overtakes another.
func ExampleEndpoint_Drain() {
	table, eps := exampleNodes()
	defer eps[0].Close()
	defer eps[1].Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	err := eps[0].Drain(ctx, func() error {
		return table.Set(vlan.Route{Dst: eps[1].MAC(0), OptionalTag: transport.Tagged(transport.Tag{VID: 2})})
	}, 1)
	path, _ := eps[0].Path(1, 0)
	fmt.Println(path, err)
	// Output: node 1 by VID 2 <nil>
}
