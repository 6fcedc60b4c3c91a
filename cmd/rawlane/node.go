package main

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

func newNodeCommand() *cobra.Command {
	p := &place{pin: "none"}
	var asJSON bool
	var stay time.Duration
	cmd := &cobra.Command{
		Use:   "node --node K --nodes N [flags]",
		Short: "Find the other nodes of a cluster on the wire, and print who they are",
		Long: `Announces this machine as a node until all nodes of the cluster are heard, and prints their numbers and
addresses. Run it on each machine, with --node 0 to N-1, or with a host file. With --stay it goes on answering nodes
that come late.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.node == noNode && p.hostfile == "" {
				return misuse("which node is this? Give --node, or a --hostfile that tells")
			}
			if stay < 0 {
				return misuse("--stay %v: want 0 or more", stay)
			}
			if err := p.validate(); err != nil {
				return err
			}
			note := newProgress(cmd.ErrOrStderr())
			note.say("node %d: looking for %d others ...", p.node, p.nodes-1)
			m, err := p.join(cmd.Context())
			note.clear()
			if err != nil {
				return err
			}
			return errors.Join(printNodes(cmd, m, asJSON), linger(cmd.Context(), m.ep, stay), m.close())
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.kind, "link", "ring", "kind of link: packet or ring")
	f.IntVar(&p.nodes, "nodes", 2, "number of nodes")
	f.IntVar(&p.mtu, "mtu", 1500, "")
	_ = f.MarkHidden("mtu") // it is defined
	p.tagFlags(cmd)
	p.machineFlags(cmd)
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

func printNodes(cmd *cobra.Command, m *member, asJSON bool) error {
	names := make(map[mcd.NodeID]string)
	for _, p := range m.membership.Peers() {
		names[p.ID] = p.Name
	}
	for _, n := range m.membership.Nodes() {
		r := nodeRecord{Node: n.ID, MACs: n.MACs, Name: names[n.ID], Self: n.ID == m.ep.Node()}
		if asJSON {
			if err := json.NewEncoder(cmd.OutOrStdout()).Encode(r); err != nil {
				return err
			}
			continue
		}
		about := r.Name
		if r.Self {
			about = "(this one, " + m.nic + ")"
		}
		cmd.Printf("node %d  %v  %s\n", r.Node, r.MACs, about)
	}
	return nil
}
