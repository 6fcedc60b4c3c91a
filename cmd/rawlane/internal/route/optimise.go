package route

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// optimiseVerb chooses the VIDs of a plan by the traffic.
type optimiseVerb struct {
	optimiseResult // what the flags say, and then what comes of it
	json           bool

	network *topology.Topology
	folder  string // from which Topology is seen, if that is a file
	demand  traffic.Matrix
	report  optimize.Report
}

func newOptimiseCommand() *cobra.Command {
	o := &optimiseVerb{}
	cmd := &cobra.Command{
		Use:     "optimise [FILE] --topology SPEC (--pattern NAME | --traffic FILE) [flags]",
		Aliases: []string{"optimize"},
		Short:   "Choose VIDs so that the pairs that talk share links as little as possible",
		Long: `Chooses the VIDs of the pairs that talk, so that the worst link has as little to carry as possible,
and then all links together; and shows which pairs shared a link before, which change their VID, and
what cannot be bettered. It begins with the plan in FILE, or else with one whose VIDs go round. With
--out it writes the plan that it has found, which has the rule of the first one and lists only pairs
that differ from it.

Topologies: ` + topology.Specs + `, or a file.
Patterns: ` + traffic.Patterns + `.
A traffic's file has a flow in each line: "0>8 1G" one way, "2-9 500M" both ways.

  rawlane route optimise --topology vbft:4x4x4 --pattern cg16
  rawlane route optimise examples/vbft16.yaml --pattern shift:8 --out better.yaml
  rawlane route optimise plan.yaml --traffic flows.txt --max-changes 4`,
		Args: o.validate,
		RunE: o.run,
	}
	f := cmd.Flags()
	f.StringVar(&o.Topology, "topology", "", "the network, if not the plan's: a spec or a file")
	f.StringVar(&o.Pattern, "pattern", "", "who sends to whom, by name")
	f.StringVar(&o.Traffic, "traffic", "", "who sends how much to whom: a file")
	f.IntVar(&o.MaxChanges, "max-changes", 0, "change this many pairs at most; 0: any number")
	f.Float64Var(&o.PerChange, "per-change", 0.1,
		"leave pairs alone that would lower the sum of squares by less than this part of a pair's share")
	f.StringVar(&o.Out, "out", "", "write the plan to this file")
	jsonFlag(cmd, &o.json)
	return cmd
}

func (o *optimiseVerb) validate(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return cli.Misuse("want one plan's file, or none")
	case len(args) == 1:
		o.File = args[0]
	case o.Topology == "":
		return cli.Misuse("which network? Give --topology, or a plan that names one")
	}
	if (o.Pattern == "") == (o.Traffic == "") {
		return cli.Misuse("who sends to whom? Give --pattern or --traffic, and not both")
	}
	if o.MaxChanges < 0 {
		return cli.Misuse("--max-changes %d: want 0 or more", o.MaxChanges)
	}
	if !(o.PerChange >= 0 && o.PerChange <= math.MaxFloat64) {
		return cli.Misuse("--per-change %v: want a number of 0 or more", o.PerChange)
	}
	return cli.CheckFile("out", o.Out)
}

func (o *optimiseVerb) run(cmd *cobra.Command, _ []string) error {
	plan, err := o.load(cmd.Context())
	if err != nil {
		return err
	}
	better, err := o.optimise(cmd.Context(), plan)
	if err != nil {
		return err
	}
	o.fill()
	if o.Out != "" {
		if err := o.writePlan(better); err != nil {
			return err
		}
	}
	return cli.Write(cmd.OutOrStdout(), o.json, &o.optimiseResult, o.writeText)
}

// optimise finds the better plan, which takes half a minute where millions of pairs talk.
func (o *optimiseVerb) optimise(ctx context.Context, current *plan.Plan) (*plan.Plan, error) {
	options := optimize.Options{MaxChanges: o.MaxChanges, PerChange: o.PerChange}
	var better *plan.Plan // read only if the computation has ended
	err := cli.Compute(ctx, func() (err error) {
		better, o.report, err = optimize.Plan(o.network, o.demand, current, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return better, nil
}

// load reads the first plan, its network and the traffic. The plan is nil without a file.
func (o *optimiseVerb) load(ctx context.Context) (plan *plan.Plan, err error) {
	if o.File != "" {
		if plan, err = cli.ReadPlan(ctx, o.File); err != nil {
			return nil, err
		}
	}
	if err := o.loadNetwork(plan); err != nil {
		return nil, err
	}
	if plan != nil {
		if err := plan.Check(o.network); err != nil {
			return nil, fmt.Errorf("%s: on %s: %w", o.File, o.Topology, err)
		}
	}
	return plan, o.loadTraffic()
}

// loadNetwork finds the network: --topology, or the plan's.
func (o *optimiseVerb) loadNetwork(plan *plan.Plan) (err error) {
	if o.Topology == "" {
		if plan.Topology == "" {
			return cli.Misuse("%s names no topology: give --topology", o.File)
		}
		o.Topology, o.folder = plan.Topology, filepath.Dir(o.File)
		o.network, err = cli.PlanNetwork(plan, o.File)
		return err
	}
	o.network, err = cli.LoadTopology(o.Topology)
	if err == nil && len(o.network.VLANs) == 0 {
		err = fmt.Errorf("topology %s: no VLANs (rawlane route vlans --compute finds some)", o.Topology)
	}
	return err
}

func (o *optimiseVerb) loadTraffic() error {
	n := len(o.network.Hosts)
	if o.Pattern != "" {
		demand, err := traffic.Pattern(o.Pattern, n)
		if err != nil {
			return cli.AsMisuse(fmt.Errorf("--pattern: %w", err))
		}
		o.demand = demand
		return nil
	}
	f, err := cli.OpenFile("--traffic", o.Traffic, `want a file with a flow in each line, such as "0>8 1G"`)
	if err != nil {
		return err
	}
	defer f.Close()
	o.demand, err = traffic.Read(o.Traffic, f, n)
	return err
}

// writePlan writes a plan to the file of --out. Without a first plan the addresses are made up:
// 02:00:... ending in n+1 for node n, and the hosts' names are left out that no node may have.
func (o *optimiseVerb) writePlan(better *plan.Plan) (err error) {
	if better.Topology, err = o.topologyFromOut(); err != nil {
		return err
	}
	for i := range better.Nodes {
		if n := &better.Nodes[i]; o.File == "" {
			n.MAC = transport.MAC{0x02}
			binary.BigEndian.PutUint32(n.MAC[2:], uint32(i+1))
			if !plan.ValidName(n.Name) {
				n.Name = ""
			}
		}
	}
	var b bytes.Buffer
	if _, err := better.WriteTo(&b); err != nil {
		return fmt.Errorf("%s: %w", o.Out, err)
	}
	return cli.WriteFile("out", o.Out, b.Bytes())
}

// topologyFromOut returns the name of the network for the plan that is written: that of a file is
// seen from the plan's folder, or from here where the plan goes into a pipe.
func (o *optimiseVerb) topologyFromOut() (string, error) {
	if topology.IsSpec(o.Topology) || filepath.IsAbs(o.Topology) {
		return o.Topology, nil
	}
	out := o.Out
	if info, err := os.Stat(out); err == nil && !info.Mode().IsRegular() {
		out = ""
	}
	from, err := filepath.Abs(filepath.Dir(out))
	if err != nil {
		return "", err
	}
	file, err := filepath.Abs(filepath.Join(o.folder, o.Topology))
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, file)
}
