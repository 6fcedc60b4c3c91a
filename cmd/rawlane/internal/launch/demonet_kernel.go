package launch

import (
	"fmt"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

func init() {
	demoNets["ring"] = func(nodes int) (*DemoNet, error) {
		return kernelNet("ring", nodes, func(name string) (transport.Link, error) { return ring.Open(name, ring.Config{}) })
	}
	demoNets["packet"] = func(nodes int) (*DemoNet, error) {
		return kernelNet("packet", nodes, func(name string) (transport.Link, error) { return packet.Open(name, packet.Config{}) })
	}
}

// kernelNet is a bed of network namespaces, on a Linux bridge, with a link in each. An ordinary
// user's process goes on in a user namespace of its own.
func kernelNet(kind string, nodes int, open func(name string) (transport.Link, error)) (*DemoNet, error) {
	if err := testbed.Reexec(); err != nil {
		return nil, err
	}
	bed, err := testbed.New(testbed.Config{Nodes: nodes, Bridge: true})
	if err != nil {
		return nil, err
	}
	s := &DemoNet{
		Name:  fmt.Sprintf("%s links: a network namespace for each, joined by a Linux bridge", kind),
		Close: func() { _ = bed.Close() },
	}
	for k := range nodes {
		err := bed.Node(k).Do(func() error {
			l, err := open(testbed.Interface(0))
			s.Links = append(s.Links, l)
			return err
		})
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}
