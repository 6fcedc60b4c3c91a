package main

import (
	"fmt"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

func init() {
	sites["ring"] = func(nodes int) (*site, error) {
		return kernelSite("ring", nodes, func(name string) (transport.Link, error) { return ring.Open(name, ring.Config{}) })
	}
	sites["packet"] = func(nodes int) (*site, error) {
		return kernelSite("packet", nodes, func(name string) (transport.Link, error) { return packet.Open(name, packet.Config{}) })
	}
}

// kernelSite is a bed of network namespaces, on a Linux bridge, with a link in each. An ordinary user's process
// goes on in a user namespace of its own.
func kernelSite(kind string, nodes int, open func(name string) (transport.Link, error)) (*site, error) {
	if err := testbed.Reexec(); err != nil {
		return nil, err
	}
	bed, err := testbed.New(testbed.Config{Nodes: nodes, Bridge: true})
	if err != nil {
		return nil, err
	}
	s := &site{
		name:  fmt.Sprintf("%s links: a network namespace for each, joined by a Linux bridge", kind),
		close: func() { _ = bed.Close() },
	}
	for k := range nodes {
		err := bed.Node(k).Do(func() error {
			l, err := open(testbed.Interface(0))
			s.links = append(s.links, l)
			return err
		})
		if err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}
