package mcd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// NodeID is a node's number in its cluster: 0 to MaxNodeID, dense from 0 by custom.
type NodeID uint16

// MaxNodeID is the highest node number; one more stands for "all nodes" on the wire.
const MaxNodeID NodeID = 0xfffe

// ClusterID tells programs that share a segment apart: frames of other clusters are dropped.
type ClusterID uint32

// Node is an entry of the node table: a number, and the node's address on each network that the endpoint
// is attached to, in the order of the endpoint's links.
type Node struct {
	ID   NodeID          `json:"node"`
	MACs []transport.MAC `json:"macs"`
}

func (n Node) macs() string {
	var s []string
	for _, m := range n.MACs {
		s = append(s, m.String())
	}
	return strings.Join(s, ",")
}

// table is a node table with its routes resolved. It is never changed: a new one takes its place.
type table struct {
	nodes      []Node // sorted by number
	peers      []*peer
	generation uint64 // of the router when the routes were resolved
}

// peer is one node as the send path wants it: a frame template per NIC.
type peer struct {
	macs      []transport.MAC
	templates []vlan.Template
	counts    []*vlan.Count // per NIC, where the route to it is counted; nil: nobody counts
	free      *peer         // while sends are held back by a fence: the peer as it is without
}

// lookup returns the peer of that number, or nil.
func (t *table) lookup(id NodeID) *peer {
	if int(id) < len(t.peers) {
		return t.peers[id]
	}
	return nil
}

// newTable checks the nodes against each other and resolves their routes.
func newTable(nodes []Node, links []transport.Link, etherType transport.EtherType, r vlan.Router) (*table, error) {
	t := &table{nodes: slices.Clone(nodes), generation: r.Generation()}
	slices.SortStableFunc(t.nodes, func(a, b Node) int { return int(a.ID) - int(b.ID) })
	type place struct {
		nic int
		mac transport.MAC
	}
	owner := map[place]Node{}
	for i, n := range t.nodes {
		if n.ID > MaxNodeID {
			return nil, fmt.Errorf("node %d: number out of range (0 to %d)", n.ID, MaxNodeID)
		}
		if i > 0 && t.nodes[i-1].ID == n.ID {
			return nil, &ConflictError{A: t.nodes[i-1], B: n}
		}
		if len(n.MACs) < len(links) {
			return nil, fmt.Errorf("node %d: %d addresses for %d links (want one per link)", n.ID, len(n.MACs), len(links))
		}
		for nic := range links {
			mac := n.MACs[nic]
			if mac.IsZero() || mac.IsMulticast() {
				return nil, fmt.Errorf("node %d: %v is not a node's address", n.ID, mac)
			}
			if other, taken := owner[place{nic, mac}]; taken {
				return nil, &ConflictError{A: other, B: n}
			}
			owner[place{nic, mac}] = n
		}
		p, err := newPeer(n, links, etherType, r)
		if err != nil {
			return nil, fmt.Errorf("node %d: %w", n.ID, err)
		}
		t.peers = append(t.peers, make([]*peer, int(n.ID)+1-len(t.peers))...)
		t.peers[n.ID] = p
	}
	return t, nil
}

func newPeer(n Node, links []transport.Link, etherType transport.EtherType, r vlan.Router) (*peer, error) {
	p := &peer{macs: n.MACs}
	for nic, l := range links {
		t, err := vlan.NewTemplate(r, l.MAC(), n.MACs[nic], etherType)
		if err != nil {
			return nil, err
		}
		p.templates = append(p.templates, t)
		p.counts = append(p.counts, counter(r, n.MACs[nic]))
	}
	return p, nil
}

// Nodes returns the node table, sorted by number.
func (e *Endpoint) Nodes() []Node { return slices.Clone(e.table.Load().nodes) }

// SetNodes replaces the node table. Each node needs an address per link of the endpoint. Nothing changes
// if there is an error: ErrConflict where two nodes share a number or an address.
func (e *Endpoint) SetNodes(nodes []Node) error {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	t, err := newTable(nodes, e.links, e.cfg.EtherType, e.cfg.Router)
	if err == nil {
		e.table.Store(t.holding(e.fence.held))
	}
	return err
}

// routes returns the node table with routes that are not older than the router's last change.
func (e *Endpoint) routes() *table {
	t := e.table.Load()
	if t.generation == e.cfg.Router.Generation() {
		return t
	}
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	t = e.table.Load()
	if fresh, err := newTable(t.nodes, e.links, e.cfg.EtherType, e.cfg.Router); err == nil {
		fresh = fresh.holding(e.fence.held)
		e.table.Store(fresh)
		return fresh
	}
	return t // the router gave a tag that no frame can carry: keep what worked
}
