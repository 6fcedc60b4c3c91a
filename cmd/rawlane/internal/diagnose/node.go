package diagnose

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// nodeVerb finds the other nodes of a cluster.
type nodeVerb struct {
	cluster launch.ClusterFlags
	json    bool
	stay    time.Duration
}

// NewNodeCommand returns the verb node.
func NewNodeCommand() *cobra.Command {
	n := &nodeVerb{cluster: launch.ClusterFlags{Pin: "none"}}
	cmd := &cobra.Command{
		Use:   "node --node K --nodes N [flags]",
		Short: "Find the other nodes of a cluster on the wire, and print who they are",
		Long: `Announces this machine as a node until all nodes of the cluster are heard, and prints their numbers
and addresses. Run it on each machine, with --node 0 to N-1, or with a host file. With --stay it goes
on answering nodes that come late.

  rawlane node --node 0 --nodes 4
  rawlane node --hostfile hosts.txt --stay 1h`,
		Args: cli.NoArguments,
		RunE: n.run,
	}
	f := cmd.Flags()
	f.StringVar(&n.cluster.Kind, "link", "ring", "kind of link: packet, ring, shm, udp or xdp")
	launch.LinkChoice(cmd)
	n.cluster.TagFlags(cmd)
	n.cluster.MachineFlags(cmd)
	f.BoolVar(&n.json, "json", false, "print one JSON object per node")
	f.DurationVar(&n.stay, "stay", time.Second, "how long to answer others after all were heard")
	return cmd
}

func (n *nodeVerb) validate() error {
	if n.cluster.Node == launch.NoNode && n.cluster.Hostfile == "" {
		return cli.Misuse("which node is this? Give --node, or a --hostfile that tells")
	}
	if n.stay < 0 {
		return cli.Misuse("--stay %v: want 0 or more", n.stay)
	}
	return n.cluster.Validate()
}

func (n *nodeVerb) run(cmd *cobra.Command, _ []string) error {
	if err := n.validate(); err != nil {
		return err
	}
	m, err := join(cmd, &n.cluster)
	if err != nil {
		return err
	}
	return errors.Join(n.print(cmd, m), launch.Linger(cmd.Context(), m.Endpoint, n.stay), m.Close())
}

// nodeRecord is a node as JSON.
type nodeRecord struct {
	Node mcd.NodeID      `json:"node"`
	MACs []transport.MAC `json:"macs"`
	Name string          `json:"name,omitempty"`
	Self bool            `json:"self,omitempty"`

	InMemory bool `json:"in_memory,omitempty"` // frames for it go through shared memory
	Process  int  `json:"process,omitempty"`   // its number, if so
}

func (n *nodeVerb) print(cmd *cobra.Command, m *launch.Member) error {
	names := make(map[mcd.NodeID]string)
	for _, p := range m.Membership.Peers() {
		names[p.ID] = p.Name
	}
	processes := m.InMemory()
	lines := cli.Lines{Out: cmd.OutOrStdout(), JSON: n.json}
	for _, other := range m.Membership.Nodes() {
		r := nodeRecord{
			Node: other.ID, MACs: other.MACs, Name: names[other.ID], Self: other.ID == m.Endpoint.Node(),
		}
		r.Process, r.InMemory = processes[other.MACs[0]]
		about := r.Name
		switch {
		case r.Self && m.NIC == "": // shared memory has none
			about = "(this one)"
		case r.Self:
			about = "(this one, " + m.NIC + ")"
		case r.InMemory:
			about = strings.TrimSpace(fmt.Sprintf("%s through memory, process %d", r.Name, r.Process))
		}
		if err := lines.Write(r, "", fmt.Sprintf("node %d  %v  %s\n", r.Node, r.MACs, about)); err != nil {
			return err
		}
	}
	return nil
}
