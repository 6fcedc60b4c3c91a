//go:build linux

package main

import (
	"errors"
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
	var routes []vlan.Route
	for k := range frameNodes {
		tag := transport.Tagged(transport.Tag{VID: transport.VID(1 + k%4)})
		routes = append(routes, vlan.Route{Dst: mac(k), OptionalTag: tag})
	}
	table, err := vlan.NewTable(routes)
	if err != nil {
		return err
	}
	f, err := newFrameSender(table, frameNodes, frameNodes/2)
	if err != nil {
		return err
	}
	defer func() { _ = f.ep.Close() }()
	return harness.Measure(e.iters, func(i int) error {
		vid := transport.VID(2 + i%2)
		tag := transport.Tagged(transport.Tag{VID: vid})
		if err := table.Set(vlan.Route{Dst: mac(frameNodes / 2), OptionalTag: tag}); err != nil {
			return err
		}
		return f.send(vid)
	})
}

// frameSender is an endpoint of node 0 that sends to one other.
type frameSender struct {
	ep      *mcd.Endpoint
	port    *mcd.Port
	link    *lastFrame
	to      mcd.Dest
	payload []byte
}

func newFrameSender(router vlan.Router, size, to int) (*frameSender, error) {
	nodes := make([]mcd.Node, size)
	for k := range nodes {
		nodes[k] = mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{mac(k)}}
	}
	inner, err := fabric.Links(1) // its address is node 0's
	if err != nil {
		return nil, err
	}
	f := &frameSender{link: &lastFrame{Link: inner[0]}, payload: make([]byte, 64)}
	f.to = mcd.To(mcd.Addr{Node: mcd.NodeID(to), Port: 1})
	if f.ep, err = mcd.Open(mcd.Config{Nodes: nodes, Router: router}, f.link); err != nil {
		return nil, err
	}
	if f.port, err = f.ep.OpenPort(1, mcd.PortOptions{}); err != nil {
		return nil, errors.Join(err, f.ep.Close())
	}
	return f, nil
}

// send sends a frame, and checks that it carried the VID.
func (f *frameSender) send(vid transport.VID) error {
	if err := f.port.TrySend(0, f.to, f.payload); err != nil {
		return err
	}
	if tag := transport.Tagged(transport.Tag{VID: vid}); f.link.tag != tag {
		return fmt.Errorf("the frame carried %v, want %v", f.link.tag, tag)
	}
	return nil
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
