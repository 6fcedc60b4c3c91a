package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// oneFile wants the name of one file as the only argument.
func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return misuse("want one plan's file")
	}
	return nil
}

// readPlan reads a plan from a file.
func readPlan(file string) (*plan.Plan, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return plan.Parse(file, f)
}

// readPlanAndNetwork reads a plan from a file, and makes sure that the network that it is for can carry it out. If the plan
// names none, network is nil.
func readPlanAndNetwork(file string) (p *plan.Plan, network *topology.Topology, err error) {
	if p, err = readPlan(file); err != nil || p.Topology == "" {
		return p, nil, err
	}
	if network, err = planNetwork(p, file); err != nil {
		return nil, nil, err
	}
	if err := p.Check(network); err != nil {
		return nil, nil, fmt.Errorf("%s: on %s: %w", file, p.Topology, err)
	}
	return p, network, nil
}

// planNetwork is the network that a plan is for: from a generator, or from a file whose name counts from the plan's folder.
func planNetwork(p *plan.Plan, file string) (*topology.Topology, error) {
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

// planSummary is a plan in a line: "16 nodes, VIDs 1 2 3 4, 120 pairs, 6 of them listed".
func planSummary(p *plan.Plan) string {
	n := len(p.Nodes)
	return fmt.Sprintf("%s, VIDs %s, %s, %d of them listed", count(n, "node"), strings.Trim(fmt.Sprint(p.VIDs), "[]"), count(n*(n-1)/2, "pair"), len(p.Pairs))
}
