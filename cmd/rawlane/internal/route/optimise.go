package route

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

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
	file     string // of the first plan; or empty
	topology string
	pattern  string
	traffic  string // file
	out      string // file
	json     bool
	options  optimize.Options

	network *topology.Topology
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
	f.StringVar(&o.topology, "topology", "", "the network, if not the plan's: a spec or a file")
	f.StringVar(&o.pattern, "pattern", "", "who sends to whom, by name")
	f.StringVar(&o.traffic, "traffic", "", "who sends how much to whom: a file")
	f.IntVar(&o.options.MaxChanges, "max-changes", 0, "change this many pairs at most; 0: any number")
	f.Float64Var(&o.options.PerChange, "per-change", 0.1,
		"leave pairs alone that would lower the sum of squares by less than this part of a pair's share")
	f.StringVar(&o.out, "out", "", "write the plan to this file")
	jsonFlag(cmd, &o.json)
	return cmd
}

func (o *optimiseVerb) validate(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return cli.Misuse("want one plan's file, or none")
	case len(args) == 1:
		o.file = args[0]
	case o.topology == "":
		return cli.Misuse("which network? Give --topology, or a plan that names one")
	}
	if (o.pattern == "") == (o.traffic == "") {
		return cli.Misuse("who sends to whom? Give --pattern or --traffic, and not both")
	}
	if o.options.MaxChanges < 0 {
		return cli.Misuse("--max-changes %d: want 0 or more", o.options.MaxChanges)
	}
	if !(o.options.PerChange >= 0) {
		return cli.Misuse("--per-change %v: want 0 or more", o.options.PerChange)
	}
	return nil
}

func (o *optimiseVerb) run(cmd *cobra.Command, _ []string) error {
	plan, err := o.load()
	if err != nil {
		return err
	}
	better, report, err := optimize.Plan(o.network, o.demand, plan, o.options)
	if err != nil {
		return err
	}
	o.report = report
	if o.out != "" {
		if err := writePlan(o.out, better); err != nil {
			return err
		}
	}
	return cli.Write(cmd.OutOrStdout(), o.json, o.result(), o.writeText)
}

// load reads the first plan, its network and the traffic.
func (o *optimiseVerb) load() (plan *plan.Plan, err error) {
	if o.file != "" {
		if plan, err = cli.ReadPlan(o.file); err != nil {
			return nil, err
		}
	}
	if err := o.loadNetwork(plan); err != nil {
		return nil, err
	}
	if plan == nil {
		if plan, err = plainPlan(o.network); err != nil {
			return nil, err
		}
	} else if err := plan.Check(o.network); err != nil {
		return nil, fmt.Errorf("%s: on %s: %w", o.file, o.topology, err)
	}
	plan.Topology = o.topology
	return plan, o.loadTraffic()
}

// loadNetwork finds the network: --topology, or the plan's.
func (o *optimiseVerb) loadNetwork(plan *plan.Plan) (err error) {
	if o.topology == "" {
		if plan.Topology == "" {
			return cli.Misuse("%s names no topology: give --topology", o.file)
		}
		o.topology = plan.Topology
		o.network, err = cli.PlanNetwork(plan, o.file)
		return err
	}
	o.network, err = cli.LoadTopology(o.topology)
	return err
}

func (o *optimiseVerb) loadTraffic() error {
	n := len(o.network.Hosts)
	if o.pattern != "" {
		demand, err := traffic.Pattern(o.pattern, n)
		if err != nil {
			return cli.AsMisuse(fmt.Errorf("--pattern: %w", err))
		}
		o.demand = demand
		return nil
	}
	f, err := os.Open(o.traffic)
	if err != nil {
		return err
	}
	defer f.Close()
	o.demand, err = traffic.Read(o.traffic, f, n)
	return err
}

// plainPlan makes a first plan for a network: VIDs in round robin, and made-up addresses, 02:00:...
// ending in n+1 for node n.
func plainPlan(network *topology.Topology) (*plan.Plan, error) {
	macs := make([]transport.MAC, len(network.Hosts))
	for i := range macs {
		macs[i] = transport.MAC{0x02}
		binary.BigEndian.PutUint32(macs[i][2:], uint32(i+1))
	}
	plan, err := plan.RoundRobin(macs, network.VIDs())
	if err != nil {
		return nil, fmt.Errorf("a plan for this network: %w", err)
	}
	for i, h := range network.Hosts {
		plan.Nodes[i].Name = h.Name
	}
	return plan, nil
}

// writePlan writes a plan to the file of --out.
func writePlan(file string, plan *plan.Plan) error {
	var b bytes.Buffer
	if _, err := plan.WriteTo(&b); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return cli.WriteFile("out", file, b.Bytes())
}
