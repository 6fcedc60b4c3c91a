package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// TopologyHelp is the help of --topology.
const TopologyHelp = "the network: " + topology.Specs + "; or a file (docs/topologies.md)"

// LoadTopology makes a network from a spec, or reads it from a file. A wrong spec is misuse; a
// wrong file is a failure.
func LoadTopology(spec string) (*topology.Topology, error) {
	t, err := topology.Load(spec, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	if err != nil && topology.IsSpec(spec) {
		return nil, AsMisuse(err)
	}
	return t, err
}

// ReadPlan reads a plan from a file, until ctx ends: a FIFO may have no end.
func ReadPlan(ctx context.Context, file string) (*plan.Plan, error) {
	var p *plan.Plan // used only if it has been read
	err := Compute(ctx, func() (err error) {
		p, err = readPlan(file)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func readPlan(file string) (*plan.Plan, error) {
	f, err := OpenFile("plan", file, "rawlane route optimise --out makes one, and route dump prints a manager's")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return plan.Parse(file, f)
}

// ReadPlanAndNetwork reads a plan from a file and its network, and checks that the network has the
// routes of the plan. network is nil if the plan names none.
func ReadPlanAndNetwork(
	ctx context.Context, file string,
) (p *plan.Plan, network *topology.Topology, err error) {
	if p, err = ReadPlan(ctx, file); err != nil || p.Topology == "" {
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

// PlanNetwork returns the network that a plan names: of a generator, or in a file, whose path is
// relative to the folder of the plan.
func PlanNetwork(p *plan.Plan, file string) (*topology.Topology, error) {
	network, err := topology.Load(p.Topology, func(name string) (io.ReadCloser, error) {
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
