//go:build linux

package main

import (
	"fmt"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/vlan"
)

// frameNodes is the size of the cluster whose node 0 sends the frame: as many as a table can hold.
const frameNodes = vlan.MaxRoutes - 1

// frameAsk changes the route to one of many nodes, and sends a frame there through an endpoint.
func (e end) frameAsk() error {
	routes, nodes := []vlan.Route{}, make([]mcd.Node, frameNodes)
	for k := range nodes {
		tag := transport.Tagged(transport.Tag{VID: transport.VID(1 + k%4)})
		routes = append(routes, vlan.Route{Dst: mac(k), OptionalTag: tag})
		nodes[k] = mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{mac(k)}}
	}
	table, err := vlan.NewTable(routes)
	if err != nil {
		return err
	}
	inner, err := fabric.Links(1) // its address is node 0's
	if err != nil {
		return err
	}
	link := &lastFrame{Link: inner[0]}
	ep, err := mcd.Open(mcd.Config{Nodes: nodes, Router: table}, link)
	if err != nil {
		return err
	}
	defer func() { _ = ep.Close() }()
	p, err := ep.OpenPort(1, mcd.PortOptions{})
	if err != nil {
		return err
	}
	to, payload := mcd.To(mcd.Addr{Node: frameNodes / 2, Port: 1}), make([]byte, 64)
	return harness.Measure(e.iters, func(i int) error {
		vid := transport.VID(2 + i%2)
		tag := transport.Tagged(transport.Tag{VID: vid})
		if err := table.Set(vlan.Route{Dst: mac(frameNodes / 2), OptionalTag: tag}); err != nil {
			return err
		}
		if err := p.TrySend(0, to, payload); err != nil {
			return err
		}
		if link.tag != tag {
			return fmt.Errorf("the frame carried %v, want %v", link.tag, tag)
		}
		return nil
	})
}

// lastFrame is a link that notes the tag of the last frame, and sends nothing.
type lastFrame struct {
	transport.Link
	tag transport.OptionalTag
}

func (l *lastFrame) Send(frames []transport.Frame) (int, error) {
	l.tag = frames[len(frames)-1].OptionalTag
	return len(frames), nil
}
