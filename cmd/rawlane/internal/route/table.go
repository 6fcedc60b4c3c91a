package route

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
)

// showTable prints what a manager's node sends by.
func showTable(ctx context.Context, o *oneManager, asJSON bool, out io.Writer) error {
	return o.ask(ctx, func(ctx context.Context, c *manager.Client) error {
		t, err := c.Table(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(out).Encode(t)
		}
		writeTable(out, t)
		return nil
	})
}

func writeTable(out io.Writer, t *manager.Table) {
	fmt.Fprintf(out, "node %s: version %d, plan %s since version %d, %s\n",
		strings.TrimSpace(t.MAC.String()+" "+t.Name), t.Version, cmp.Or(t.PlanID, "none"), t.PlanVersion, cli.Count(len(t.Sessions), "program"))
	whose := make(map[transport.MAC]manager.Pair)
	for _, p := range t.Pairs {
		if !p.Covered {
			whose[p.B] = p
		}
	}
	for _, r := range t.Routes {
		name := ""
		if t.Plan != nil {
			if n, ok := t.Plan.NodeOf(r.Dst); ok {
				name = t.Plan.Nodes[n].Name
			}
		}
		if r.Dst == transport.Broadcast {
			name = "others"
		}
		why := "plan"
		if p, ok := whose[r.Dst]; ok {
			why = strings.TrimSuffix(p.By+": "+p.Reason, ": ")
		}
		fmt.Fprintf(out, "%v %-12s VID %-4d PCP %d  %s\n", r.Dst, name, r.VID, r.PCP, why)
	}
	if t.Prepared != nil {
		fmt.Fprintf(out, "a change is prepared: %s, until %s\n", t.Prepared.ID, t.Prepared.Expires.Format(time.RFC3339))
	}
}
