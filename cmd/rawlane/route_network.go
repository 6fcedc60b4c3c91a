package main

import (
	"io"
	"os"

	"github.com/rawlane/rawlane/vlan/topology"
)

// topologyHelp says what --topology takes.
const topologyHelp = "the network: " + topology.Specs + "; or a file (docs/topologies.md)"

// loadTopology makes a network from a spec, or reads it from a file. A wrong spec is misuse, a wrong file is not.
func loadTopology(spec string) (*topology.Topology, error) {
	t, err := topology.Load(spec, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	if err != nil && topology.IsSpec(spec) {
		return nil, &usageError{err}
	}
	return t, err
}
