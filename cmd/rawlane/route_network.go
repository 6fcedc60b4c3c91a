package main

import (
	"io"
	"os"

	"github.com/rawlane/rawlane/vlan"
)

// topologyHelp says what --topology takes.
const topologyHelp = "the network: " + vlan.TopologySpecs + "; or a file (docs/topologies.md)"

// loadTopology makes a network from a spec, or reads it from a file. A wrong spec is misuse, a wrong file is not.
func loadTopology(spec string) (*vlan.Topology, error) {
	t, err := vlan.LoadTopology(spec, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	if err != nil && vlan.IsTopologySpec(spec) {
		return nil, &usageError{err}
	}
	return t, err
}
