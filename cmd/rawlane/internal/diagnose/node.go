package diagnose

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

func NewNodeCommand() *cobra.Command {
	p := &launch.ClusterFlags{Pin: "none"}
	var asJSON bool
	var stay time.Duration
	cmd := &cobra.Command{
		Use:   "node --node K --nodes N [flags]",
		Short: "Find the other nodes of a cluster on the wire, and print who they are",
		Long: `Announces this machine as a node until all nodes of the cluster are heard, and prints their numbers and
addresses. Run it on each machine, with --node 0 to N-1, or with a host file. With --stay it goes on answering nodes
that come late.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.Node == launch.NoNode && p.Hostfile == "" {
				return cli.Misuse("which node is this? Give --node, or a --hostfile that tells")
			}
			if stay < 0 {
				return cli.Misuse("--stay %v: want 0 or more", stay)
			}
			if err := p.Validate(); err != nil {
				return err
			}
			note := cli.NewProgress(cmd.ErrOrStderr())
			note.Say("node %d: looking for %d others ...", p.Node, p.Nodes-1)
			m, err := p.Join(cmd.Context())
			note.Clear()
			if err != nil {
				return err
			}
			return errors.Join(printNodes(cmd, m, asJSON), launch.Linger(cmd.Context(), m.Endpoint, stay), m.Close())
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.Kind, "link", "ring", "kind of link: packet or ring")
	f.IntVar(&p.Nodes, "nodes", 2, "number of nodes")
	f.IntVar(&p.MTU, "mtu", 1500, "")
	_ = f.MarkHidden("mtu") // it is defined
	p.TagFlags(cmd)
	p.MachineFlags(cmd)
	f.BoolVar(&asJSON, "json", false, "print one JSON object per node")
	f.DurationVar(&stay, "stay", time.Second, "how long to answer others after all were heard")
	return cmd
}

// nodeRecord is a node as JSON.
type nodeRecord struct {
	Node mcd.NodeID      `json:"node"`
	MACs []transport.MAC `json:"macs"`
	Name string          `json:"name,omitempty"`
	Self bool            `json:"self,omitempty"`
}

func printNodes(cmd *cobra.Command, m *launch.Member, asJSON bool) error {
	names := make(map[mcd.NodeID]string)
	for _, p := range m.Membership.Peers() {
		names[p.ID] = p.Name
	}
	for _, n := range m.Membership.Nodes() {
		r := nodeRecord{Node: n.ID, MACs: n.MACs, Name: names[n.ID], Self: n.ID == m.Endpoint.Node()}
		if asJSON {
			if err := json.NewEncoder(cmd.OutOrStdout()).Encode(r); err != nil {
				return err
			}
			continue
		}
		about := r.Name
		if r.Self {
			about = "(this one, " + m.NIC + ")"
		}
		cmd.Printf("node %d  %v  %s\n", r.Node, r.MACs, about)
	}
	return nil
}
