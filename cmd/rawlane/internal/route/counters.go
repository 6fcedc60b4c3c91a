package route

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

func newCountersCommand() *cobra.Command {
	return newQuery(&cobra.Command{
		Use:   "counters [--manager ADDRESS]",
		Short: "Say what a node's programs have sent, to whom and by which VID",
		Long: `Prints the frames and bytes that the programs on a node have sent by their manager's routes since it
started: to each destination with each VID, and with each VID to all.`,
	}, (*manager.Client).Counters, writeCounters)
}

func writeCounters(out io.Writer, c api.Counters) {
	fmt.Fprintf(out, "%-17s %-12s %-8s %14s %16s\n", "# Destination", "node", "VID", "frames", "bytes")
	for _, n := range c.Nodes {
		name := n.Name
		if n.Dst == transport.Broadcast {
			name = "others"
		}
		fmt.Fprintf(out, "%v %-12s VID %-4d %14d %16d\n", n.Dst, name, n.VID, n.Frames, n.Bytes)
	}
	for _, v := range c.VIDs {
		fmt.Fprintf(out, "%-17s %-12s VID %-4d %14d %16d\n", "all", "", v.VID, v.Frames, v.Bytes)
	}
	if c.Silent > 0 {
		fmt.Fprintf(out, "%s did not report in time: what is counted is of before\n", cli.Count(c.Silent, "program"))
	}
}
