package route

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// writeTable writes the routes of a manager's node, and the source of each.
func writeTable(out io.Writer, t *api.Table) {
	fmt.Fprintf(out, "node %s: version %v, plan %s since version %v, %s\n",
		strings.TrimSpace(t.MAC.String()+" "+t.Name), t.Version, cmp.Or(t.PlanID, "none"), t.PlanVersion,
		cli.Count(len(t.Sessions), "program"))
	sources := make(map[transport.MAC]api.Pair)
	for _, p := range t.Pairs {
		if !p.Covered {
			sources[p.B] = p
		}
	}
	for _, r := range t.Routes {
		why := "plan"
		if p, ok := sources[r.Dst]; ok {
			why = strings.TrimSuffix(p.By+": "+p.Reason, ": ")
		}
		fmt.Fprintf(out, "%v %-12s VID %-4d PCP %d  %s\n", r.Dst, nameIn(t, r.Dst), r.VID, r.PCP, why)
	}
	if t.Prepared != nil {
		fmt.Fprintf(out, "a change is prepared: %s, until %s\n", t.Prepared.ID, t.Prepared.Expires.Format(time.RFC3339))
	}
}

// nameIn returns the name of a destination in a table's plan.
func nameIn(t *api.Table, dst transport.MAC) string {
	if dst == transport.Broadcast {
		return "others"
	}
	if t.Plan == nil {
		return ""
	}
	n, ok := t.Plan.NodeOf(dst)
	if !ok {
		return ""
	}
	return t.Plan.Nodes[n].Name
}
