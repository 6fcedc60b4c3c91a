package route

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

func newLogCommand() *cobra.Command {
	return newQuery(&cobra.Command{
		Use:   "log [--manager ADDRESS]",
		Short: "Say what changed a node's routes, and why",
		Long: fmt.Sprintf("Prints a manager's latest %d changes since it started: when, what, by whom and why.",
			api.MaxLog),
	}, (*manager.Client).Log, writeLog)
}

func writeLog(out io.Writer, l api.Log) {
	for _, e := range l.Entries {
		fmt.Fprintf(out, "%s version %v: %s by %s: %s",
			e.Time.Format("2006-01-02 15:04:05.000"), e.Version, e.Act, e.By, cli.Count(e.Count, "route"))
		if e.Reason != "" {
			fmt.Fprintf(out, ": %s", e.Reason)
		}
		fmt.Fprintln(out)
		for _, r := range e.Routes {
			fmt.Fprintf(out, "  %v by VID %d\n", r.Dst, r.VID)
		}
	}
}
