package launch

import (
	"errors"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

// kernelLinks open a link on a network interface, by kind.
var kernelLinks = map[string]func(ifname string) (transport.Link, error){
	"packet": func(ifname string) (transport.Link, error) { return packet.Open(ifname, packet.Config{}) },
	"ring":   func(ifname string) (transport.Link, error) { return ring.Open(ifname, ring.Config{}) },
}

// InMemory makes the nodes on a fabric, with one switch per network.
func (c *ClusterFlags) InMemory() (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	f, err := fabric.New(fabric.Config{MTU: c.MTU})
	if err != nil {
		return nil, nil, err
	}
	links := make([][]transport.Link, c.Nodes)
	for range c.NICs {
		sw := f.AddSwitch("")
		for k := range links {
			l, err := f.Attach(sw, fabric.Station{})
			if err != nil {
				return nil, nil, err
			}
			links[k] = append(links[k], l)
		}
	}
	return c.Open(links, func() error { return nil })
}

// inThreads makes the nodes in this process: in memory, or with kernel links in namespaces.
func (c *ClusterFlags) inThreads() (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	if c.Kind == "fabric" {
		return c.InMemory()
	}
	if err := testbed.Reexec(); err != nil {
		return nil, nil, err
	}
	bed, err := testbed.New(testbed.Config{Nodes: c.Nodes, NICs: c.NICs, MTU: c.MTU})
	if err != nil {
		return nil, nil, err
	}
	links := make([][]transport.Link, c.Nodes)
	for k := range links {
		if links[k], err = openInNode(bed, k, c.Kind, c.NICs); err != nil {
			return nil, nil, errors.Join(err, bed.Close())
		}
	}
	return c.Open(links, bed.Close)
}

// openInNode opens a kernel link on each NIC of a bed's node.
func openInNode(bed *testbed.Bed, node int, kind string, nics int) (links []transport.Link, err error) {
	err = bed.Node(node).Do(func() error {
		for nic := range nics {
			l, err := kernelLinks[kind](testbed.Interface(nic))
			if err != nil {
				return err
			}
			links = append(links, l)
		}
		return nil
	})
	return links, err
}

// Open makes an endpoint of each node's links. closeAll closes the endpoints and calls closeNet.
func (c *ClusterFlags) Open(
	links [][]transport.Link, closeNet func() error,
) (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	router, err := c.router()
	if err != nil {
		return nil, nil, err
	}
	rec, err := c.recorder()
	if err != nil {
		return nil, nil, err
	}
	closeAll = func() error {
		var errs []error
		for _, e := range nodes {
			errs = append(errs, e.Close())
		}
		return errors.Join(append(errs, rec.close(), closeNet())...)
	}
	table := nodeTable(links)
	if links[0][0], err = rec.wrap(links[0][0]); err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	for k, own := range links {
		if err := c.Faults.wrapAll(own, k); err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		e, err := mcd.Open(mcd.Config{
			Cluster: mcd.ClusterID(c.cluster), Node: mcd.NodeID(k), Nodes: table, Router: router,
		}, own...)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		nodes = append(nodes, e)
	}
	return nodes, closeAll, nil
}

func nodeTable(links [][]transport.Link) []mcd.Node {
	table := make([]mcd.Node, len(links))
	for k := range links {
		table[k].ID = mcd.NodeID(k)
		for _, l := range links[k] {
			table[k].MACs = append(table[k].MACs, l.MAC())
		}
	}
	return table
}
