package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rawlane/rawlane/vlan"
)

// TopologyHelp says what --topology takes.
const TopologyHelp = "the network: " + vlan.TopologySpecs + "; or a file (docs/topologies.md)"

// LoadTopology makes a network from a spec, or reads it from a file. A wrong spec is misuse, a
// wrong file is not.
func LoadTopology(spec string) (*vlan.Topology, error) {
	t, err := vlan.LoadTopology(spec, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	if err != nil && vlan.IsTopologySpec(spec) {
		return nil, AsMisuse(err)
	}
	return t, err
}

// ReadPlan reads a plan from a file.
func ReadPlan(file string) (*vlan.Plan, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return vlan.ParsePlan(file, f)
}

// ReadPlanAndNetwork reads a plan from a file, and makes sure that the network that it is for can
// carry it out. If the plan names none, network is nil.
func ReadPlanAndNetwork(file string) (p *vlan.Plan, network *vlan.Topology, err error) {
	if p, err = ReadPlan(file); err != nil || p.Topology == "" {
		return p, nil, err
	}
	if network, err = PlanNetwork(p, file); err != nil {
		return nil, nil, err
	}
	if err := p.Check(network); err != nil {
		return nil, nil, fmt.Errorf("%s: on %s: %w", file, p.Topology, err)
	}
	return p, network, nil
}

// PlanNetwork is the network that a plan is for: from a generator, or from a file whose name counts
// from the plan's folder.
func PlanNetwork(p *vlan.Plan, file string) (*vlan.Topology, error) {
	network, err := vlan.LoadTopology(p.Topology, func(name string) (io.ReadCloser, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(file), name)
		}
		return os.Open(name)
	})
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w (a plan's network is looked for beside the plan)", err)
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return network, nil
}
