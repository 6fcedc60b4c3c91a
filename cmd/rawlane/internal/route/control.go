package route

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"

	"github.com/rawlane/rawlane/vlan/topology"
)

func newControlCommand() *cobra.Command {
	var m managerFlags
	var spec string
	var options coordinator.ControlOptions
	cmd := &cobra.Command{
		Use:   "control --topology SPEC --managers FILE|LIST [flags]",
		Short: "Have the network choose its routes by itself",
		Long: `Reads what the nodes have sent, period by period, and applies another plan where the worst link
would be better off by it for long enough, until it is interrupted. It says what it changes and why;
the managers' logs have it, too (rawlane route log), and it goes on where nobody reads it here any
more. All managers must have one and the same plan to begin with (rawlane route apply).

  rawlane route control --topology vbft:4x4x4 --managers managers.txt

Topologies: ` + topology.Specs + `, or a file.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if spec == "" {
				return cli.Misuse("which network? Give --topology")
			}
			if err := checkControl(&options.Config); err != nil {
				return err
			}
			if options.Topology, err = cli.LoadTopology(spec); err != nil {
				return err
			}
			options.Logger = cli.NewLogger(cmd.OutOrStdout(), m.json)
			err = m.askAll(func(clients []*manager.Client) error {
				return coordinator.Control(cmd.Context(), clients, options)
			})
			if errors.Is(err, context.Canceled) {
				return nil // the user interrupts it: there is no other end
			}
			return err
		},
	}
	m.all(cmd)
	f, c := cmd.Flags(), &options.Config
	f.StringVar(&spec, "topology", "", cli.TopologyHelp)
	f.DurationVar(&c.Period, "period", 0, "how often counters are read and decisions made; 0: 1s")
	f.Float64Var(&c.Gain, "gain", 0, "by what part the worst link must become lower; 0: 0.1")
	f.IntVar(&c.Hysteresis, "hysteresis", 0, "periods in a row that must show such a gain; 0: 3")
	f.IntVar(&c.MaxChanges, "max-changes", 0, "how many pairs may change in a period; 0: 8")
	f.BoolVar(&m.json, "json", false, "log as JSON")
	return cmd
}

const (
	// minPeriod is what it takes to ask managers at all: what is asked in less looks like silence.
	minPeriod = 10 * time.Millisecond
	// maxPeriod is longer than any traffic that a controller could follow.
	maxPeriod = 24 * time.Hour
)

// checkControl refuses flags that no controller takes; 0 stands for the default.
func checkControl(c *control.ControllerConfig) error {
	switch {
	case c.Period != 0 && (c.Period < minPeriod || c.Period > maxPeriod):
		return cli.Misuse("--period %v: want %v to %v, or 0 for 1s", c.Period, minPeriod, maxPeriod)
	case !(c.Gain >= 0 && c.Gain < 1):
		return cli.Misuse("--gain %v: want 0 or more, and less than 1", c.Gain)
	case c.Hysteresis < 0 || c.Hysteresis > control.MaxHysteresis:
		return cli.Misuse("--hysteresis %d: want 0 to %d", c.Hysteresis, control.MaxHysteresis)
	case c.MaxChanges < 0:
		return cli.Misuse("--max-changes %d: want 0 or more", c.MaxChanges)
	}
	return nil
}
