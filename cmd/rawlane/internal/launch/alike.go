package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
)

const (
	// alikePort is where nodes of several machines compare what they run.
	alikePort mcd.PortID = 202
	// maxAlike bounds what is shown of another node's.
	maxAlike = 300
)

// Alike says what all nodes are to run: the verb, and its flags of these names, with their values.
func Alike(cmd *cobra.Command, flags ...string) string {
	var b strings.Builder
	b.WriteString(cmd.CommandPath())
	for _, name := range flags {
		if value := cmd.Flags().Lookup(name).Value.String(); value != "" {
			fmt.Fprintf(&b, " --%s %s", name, value)
		}
	}
	return b.String()
}

// agree compares what the nodes run, each as its own user has typed it. Without it those that
// differ would wait for each other's messages, and each would say that the other is silent.
func agree(ctx context.Context, ep *mcd.Endpoint, alike string) (err error) {
	x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{Port: alikePort, PeerTimeout: AskTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	all, err := x.Exchange(ctx, []byte(alike))
	if err != nil {
		return fmt.Errorf("what do the others run? %w (start the same verb of the same rawlane on each node)", err)
	}
	for i, n := range ep.Nodes() {
		if string(all[i]) != alike {
			return fmt.Errorf("this node runs %q, and node %d %.*q (want the same on all)",
				alike, n.ID, maxAlike, all[i])
		}
	}
	return nil
}
