package route

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan"
)

// oneFile wants the name of one file as the only argument.
func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Misuse("want one plan's file")
	}
	return nil
}

// planSummary is a plan in a line: "16 nodes, VIDs 1 2 3 4, 120 pairs, 6 of them listed".
func planSummary(p *vlan.Plan) string {
	n := len(p.Nodes)
	return fmt.Sprintf("%s, VIDs %s, %s, %d of them listed", cli.Count(n, "node"), strings.Trim(fmt.Sprint(p.VIDs), "[]"), cli.Count(n*(n-1)/2, "pair"), len(p.Pairs))
}
