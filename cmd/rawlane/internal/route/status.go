package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
)

func newStatusCommand() *cobra.Command {
	var m managerFlags
	var watch time.Duration
	cmd := &cobra.Command{
		Use:   "status --managers FILE|LIST",
		Short: "Say which plan each node has, and whether it is the same",
		Long: `Prints which plan each node's manager has, since which version of its routes, and how many of its
pairs are not as the plan says. Equal plans have one id, on all nodes; "route check" says that of a
file. If some node does not answer, has another plan than the rest, cannot do its work, or knows of
paths that are down (managers with --failover do), it exits with 1. It says where the default VID, by
which frames to groups and to all go, is down. With --watch it asks again and again until it is
interrupted, and then exits with 0.

Nodes that have different plans send by different VIDs, and switches flood what they send. To mend
it, apply a plan to all of them:

  rawlane route status --managers managers.txt
  rawlane route dump --manager unix:/run/a.sock > plan.yaml     # one that has the right one
  rawlane route apply plan.yaml --managers managers.txt`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch < 0 {
				return cli.Misuse("--watch %v: want how long to wait in between, such as 2s", watch)
			}
			return m.askAll(func(clients []*manager.Client) error {
				for {
					err := survey(cmd, clients, m.json)
					if watch > 0 && cmd.Context().Err() != nil && !errors.Is(err, errNotPrinted) {
						return nil // the user interrupts it: there is no other end
					}
					if watch == 0 || errors.Is(err, errNotPrinted) {
						return err
					}
					if err != nil {
						cmd.PrintErrln(cli.Printable(err.Error()))
					}
					select {
					case <-time.After(watch):
					case <-cmd.Context().Done():
						return nil
					}
				}
			})
		},
	}
	m.all(cmd)
	cmd.Flags().DurationVar(&watch, "watch", 0, "ask again after this time, until interrupted")
	jsonFlag(cmd, &m.json)
	return cmd
}

var errNotPrinted = errors.New("could not print")

// survey asks all nodes and prints their answers, unless it is interrupted: those that had no time
// to answer would be said to give none.
func survey(cmd *cobra.Command, clients []*manager.Client, asJSON bool) error {
	ctx, cancel := withTimeout(cmd.Context(), timeoutOf(len(clients)))
	defer cancel()
	s := coordinator.Survey(ctx, clients)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	if err := cli.Write(cmd.OutOrStdout(), asJSON, s, func(w io.Writer) { writeStatus(w, s) }); err != nil {
		return fmt.Errorf("%w: %w", errNotPrinted, err)
	}
	return s.Err()
}

func writeStatus(out io.Writer, s *coordinator.Status) {
	cli.Table(out, func(w io.Writer) {
		fmt.Fprintf(w, "# Manager\tnode\tplan\tsince version\tnot by plan\tprograms\tpaths\twhy\n")
		for _, n := range s.Nodes {
			if n.Error != "" {
				fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\tno answer\n", n.Manager)
				continue
			}
			why := cmp.Or(n.Reason, "-")
			if n.Prepared != "" {
				why += "; another change is prepared"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%d\t%d\t%s\t%s\n", n.Manager, cmp.Or(n.Name, n.MAC.String()),
				cmp.Or(n.PlanID, "none"), n.PlanVersion, n.Pairs, n.Programs, paths(n), why)
		}
	})
}

// paths says how the paths from a node are, in a word or two.
func paths(n coordinator.NodeStatus) string {
	switch {
	case n.PathsDown > 0:
		return fmt.Sprintf("%d down", n.PathsDown)
	case n.Failover:
		return "up"
	}
	return "unwatched"
}
