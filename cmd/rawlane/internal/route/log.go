package route

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
)

func newRouteLogCommand() *cobra.Command {
	var o oneManager
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "log [--manager ADDRESS]",
		Short: "Say what changed a node's routes, and why",
		Long:  fmt.Sprintf("Prints a manager's latest %d changes since it started: when, what, by whom and why.", manager.MaxJournal),
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.ask(cmd.Context(), func(ctx context.Context, c *manager.Client) error {
				l, err := c.Log(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(l)
				}
				writeLog(cmd.OutOrStdout(), l)
				return nil
			})
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func writeLog(out io.Writer, l manager.Log) {
	for _, e := range l.Entries {
		fmt.Fprintf(out, "%s version %d: %s by %s: %s", e.Time.Format("2006-01-02 15:04:05.000"), e.Version, e.Act, e.By, cli.Count(e.Count, "route"))
		if e.Reason != "" {
			fmt.Fprintf(out, ": %s", e.Reason)
		}
		fmt.Fprintln(out)
		for _, r := range e.Routes {
			fmt.Fprintf(out, "  %v by VID %d\n", r.Dst, r.VID)
		}
	}
}
