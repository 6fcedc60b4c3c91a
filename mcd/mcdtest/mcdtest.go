// Package mcdtest opens a cluster of endpoints on an in-memory network, for tests and examples.
//
//	eps := mcdtest.Open(t, 4, mcdtest.Config{}) // nodes 0 to 3 on one switch, until the test ends
//
// Config sets what differs from that: several networks, the endpoints' configuration, and a wrapper
// around each link, such as transport/fault. A network of another shape is built with
// transport/fabric, and its links are given to OpenLinks.
//
// In a testing/synctest bubble, set Config.Endpoint.Spin to -1: virtual time stands still while a
// goroutine spins.
package mcdtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// Config of a cluster. The zero value is one network, and endpoints with their defaults.
type Config struct {
	// NICs is the number of links of each node, and of networks: one switch for each. Zero is 1.
	NICs int
	// Fabric configures the networks.
	Fabric fabric.Config
	// Endpoint configures the endpoints. Node, and Nodes if it is nil, are filled in.
	Endpoint mcd.Config
	// Customize, if set, changes the configuration of single nodes.
	Customize func(node mcd.NodeID, cfg *mcd.Config)
	// Wrap, if set, returns the link that a node uses in place of l.
	Wrap func(node mcd.NodeID, nic int, l transport.Link) transport.Link
}

// Open opens nodes 0 to n-1 on one switch per network. They are closed when the test ends.
func Open(t testing.TB, n int, cfg Config) []*mcd.Endpoint {
	t.Helper()
	eps, closeAll, err := Start(n, cfg)
	return cleanUp(t, eps, closeAll, err)
}

// OpenLinks opens nodes 0, 1, … on links of the caller's: links[node][nic]. They are closed when
// the test ends. Config.NICs and Config.Fabric do not matter.
func OpenLinks(t testing.TB, cfg Config, links ...[]transport.Link) []*mcd.Endpoint {
	t.Helper()
	eps, closeAll, err := cfg.open(links)
	return cleanUp(t, eps, closeAll, err)
}

func cleanUp(t testing.TB, eps []*mcd.Endpoint, closeAll func() error, err error) []*mcd.Endpoint {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeAll(); err != nil {
			t.Errorf("close endpoints: %v", err)
		}
	})
	return eps
}

// Start is Open where there is no test, as in Example functions: the caller calls closeAll.
func Start(n int, cfg Config) (eps []*mcd.Endpoint, closeAll func() error, err error) {
	links := make([][]transport.Link, n)
	f, err := fabric.New(cfg.Fabric)
	if err != nil {
		return nil, nil, err
	}
	for range max(cfg.NICs, 1) {
		network, err := f.AddSwitch("").Links(n)
		if err != nil {
			return nil, nil, err
		}
		for k, l := range network {
			links[k] = append(links[k], l)
		}
	}
	return cfg.open(links)
}

// open opens one endpoint for each node's links.
func (c Config) open(links [][]transport.Link) (eps []*mcd.Endpoint, closeAll func() error, err error) {
	closeAll = func() error {
		var errs []error
		for _, e := range slices.Backward(eps) {
			errs = append(errs, e.Close())
		}
		return errors.Join(errs...)
	}
	nodes := c.Endpoint.Nodes
	if nodes == nil {
		nodes = table(links)
	}
	for k, own := range links {
		cfg := c.Endpoint
		cfg.Node, cfg.Nodes = mcd.NodeID(k), nodes
		if c.Customize != nil {
			c.Customize(cfg.Node, &cfg)
		}
		e, err := mcd.Open(cfg, c.wrapped(cfg.Node, own)...)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		eps = append(eps, e)
	}
	return eps, closeAll, nil
}

// table returns the node table of nodes with these links.
func table(links [][]transport.Link) []mcd.Node {
	nodes := make([]mcd.Node, len(links))
	for k, own := range links {
		nodes[k].ID = mcd.NodeID(k)
		for _, l := range own {
			nodes[k].MACs = append(nodes[k].MACs, l.MAC())
		}
	}
	return nodes
}

func (c Config) wrapped(node mcd.NodeID, links []transport.Link) []transport.Link {
	if c.Wrap == nil {
		return links
	}
	wrapped := make([]transport.Link, len(links))
	for nic, l := range links {
		wrapped[nic] = c.Wrap(node, nic, l)
	}
	return wrapped
}
