package route

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"

	"github.com/rawlane/rawlane/vlan/topology"
)

// controlVerb runs the controller, which changes plans by the traffic.
type controlVerb struct {
	allManagers
	topology string
	options  coordinator.ControlOptions
	json     bool
}

func newControlCommand() *cobra.Command {
	c := &controlVerb{options: coordinator.ControlOptions{Lease: coordinator.DefaultLease}}
	cmd := &cobra.Command{
		Use:   "control --topology SPEC --managers FILE|LIST [flags]",
		Short: "Have the network choose its routes by itself",
		Long: `Reads what the nodes have sent, period by period, and applies another plan where the worst link
would be better off by it for long enough, until it is interrupted. It says what it changes and why;
the managers' logs have it, too (rawlane route log). All managers must have one and the same plan to
begin with (rawlane route apply).

  rawlane route control --topology vbft:4x4x4 --managers managers.txt

Topologies: ` + topology.Specs + `, or a file.`,
		Args: cli.NoArguments,
		RunE: c.run,
	}
	f := cmd.Flags()
	c.register(f)
	f.StringVar(&c.topology, "topology", "", cli.TopologyHelp)
	f.DurationVar(&c.options.Config.Period, "period", 0, "how often counters are read and decisions made; 0: 1s")
	f.Float64Var(&c.options.Config.Gain, "gain", 0, "by what part the worst link must become lower; 0: 0.1")
	f.IntVar(&c.options.Config.Hysteresis, "hysteresis", 0, "periods in a row that must show such a gain; 0: 3")
	f.IntVar(&c.options.Config.MaxChanges, "max-changes", 0, "how many pairs may change in a period; 0: 8")
	f.BoolVar(&c.json, "json", false, "log as JSON")
	return cmd
}

func (c *controlVerb) run(cmd *cobra.Command, _ []string) error {
	if c.topology == "" {
		return cli.Misuse("which network? Give --topology")
	}
	var err error
	if c.options.Topology, err = cli.LoadTopology(c.topology); err != nil {
		return err
	}
	c.options.Logger = cli.NewLogger(cmd.OutOrStdout(), c.json)
	err = c.ask(func(clients []*manager.Client) error {
		return coordinator.Control(cmd.Context(), clients, c.options)
	})
	if errors.Is(err, context.Canceled) {
		return nil // the user interrupts it: there is no other end
	}
	return err
}
