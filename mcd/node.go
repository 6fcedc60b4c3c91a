package mcd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// NodeID is a node's number in its cluster: 0 to MaxNodeID, dense from 0 by custom.
type NodeID uint16

// MaxNodeID is the highest node number; one more stands for "all nodes" on the wire.
const MaxNodeID NodeID = 0xfffe

// ClusterID tells programs that share a segment apart: frames of other clusters are dropped.
type ClusterID uint32

// Node is an entry of the node table: a number, and the node's address on each network that the
// endpoint is attached to, in the order of the endpoint's links.
type Node struct {
	ID   NodeID          `json:"node"`
	MACs []transport.MAC `json:"macs"`
	// Place is where it runs, if that is known: cluster.Join finds out. It must be the same in the
	// tables of all nodes.
	Place Place `json:"place,omitzero"`
}

// String returns the number and the addresses.
func (n Node) String() string { return fmt.Sprintf("{%d %v}", n.ID, n.MACs) }

func (n Node) macs() string {
	var s []string
	for _, m := range n.MACs {
		s = append(s, m.String())
	}
	return strings.Join(s, ",")
}

// Nodes returns the node table, sorted by number.
func (e *Endpoint) Nodes() []Node { return cloneNodes(e.table.Load().nodes) }

// SetNodes replaces the node table. Each node needs an address per link of the endpoint. Nothing
// changes if there is an error: ErrConflict where two nodes share a number or an address. An entry
// for this node must have its links' addresses, and no other entry may have them.
func (e *Endpoint) SetNodes(nodes []Node) error {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	return e.setNodes(nodes)
}

// SetPlace changes where a node of the table runs, and nothing else: what SetNodes sets meanwhile
// stays. If the table does not list the node it does nothing.
func (e *Endpoint) SetPlace(node NodeID, place Place) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	nodes := e.Nodes()
	i := slices.IndexFunc(nodes, func(n Node) bool { return n.ID == node })
	if i < 0 {
		return
	}
	nodes[i].Place = place
	_ = e.setNodes(nodes) // it is the table in force but for the place, and so no error
}

// setNodes is SetNodes. The caller holds tableMu.
func (e *Endpoint) setNodes(nodes []Node) error {
	nodes = cloneNodes(nodes)
	slices.SortStableFunc(nodes, func(a, b Node) int { return int(a.ID) - int(b.ID) })
	if err := checkNodes(nodes, len(e.nics)); err != nil {
		return err
	}
	if err := e.checkSelf(nodes); err != nil {
		return err
	}
	t, err := e.newTable(nodes)
	if err != nil {
		return err
	}
	old := e.table.Load()
	for p := range e.drain.held {
		if old.lookup(p.Node) != t.lookup(p.Node) {
			t.lookup(p.Node).hold(e, p.NIC, true)
			defer old.lookup(p.Node).hold(e, p.NIC, false)
		}
	}
	e.table.Store(t)
	return nil
}

// cloneNodes copies nodes. Their addresses share one allocation.
func cloneNodes(nodes []Node) []Node {
	all := slices.Clone(nodes)
	count := 0
	for i := range all {
		count += len(all[i].MACs)
	}
	macs := make([]transport.MAC, 0, count)
	for i := range all {
		first := len(macs)
		macs = append(macs, all[i].MACs...)
		all[i].MACs = slices.Clip(macs[first:])
	}
	return all
}

// checkNodes reports what is wrong with a node table, sorted by number, of an endpoint with so many
// links.
func checkNodes(nodes []Node, links int) error {
	type place struct {
		nic int
		mac transport.MAC
	}
	owner := make(map[place]Node, links*len(nodes))
	for i, n := range nodes {
		if n.ID > MaxNodeID {
			return fmt.Errorf("node %d: number out of range (0 to %d)", n.ID, MaxNodeID)
		}
		if i > 0 && nodes[i-1].ID == n.ID {
			return &ConflictError{A: nodes[i-1], B: n}
		}
		if len(n.MACs) < links {
			return fmt.Errorf("node %d: %d addresses for %d links (want one per link)", n.ID, len(n.MACs), links)
		}
		for nic, mac := range n.MACs[:links] {
			if mac.IsZero() || mac.IsMulticast() {
				return fmt.Errorf("node %d: %v is not a node's address", n.ID, mac)
			}
			if other, taken := owner[place{nic, mac}]; taken {
				return &ConflictError{A: other, B: n}
			}
			owner[place{nic, mac}] = n
		}
	}
	return nil
}

// checkSelf reports where a checked node table and this endpoint disagree on its own addresses. The
// other nodes would drop what it sends, and it would know nobody's answer.
func (e *Endpoint) checkSelf(nodes []Node) error {
	for nic := range e.nics {
		own := e.nics[nic].mac
		for _, n := range nodes {
			switch {
			case n.ID == e.cfg.Node && n.MACs[nic] != own:
				return fmt.Errorf("node %d: the table gives this node's link %d the address %v, but it has %v "+
					"(correct the table, or Config.Node)", n.ID, nic, n.MACs[nic], own)
			case n.ID != e.cfg.Node && n.MACs[nic] == own:
				return fmt.Errorf("node %d: the table gives it %v, the address of this node's link %d "+
					"(Config.Node is %d: should it be %d?)", n.ID, own, nic, e.cfg.Node, n.ID)
			}
		}
	}
	return nil
}

// table is a node table as the send path wants it. It is never changed: a new one takes its place.
type table struct {
	nodes []Node  // sorted by number
	peers []*peer // by number; nil: there is no such node
}

// lookup returns the peer of that number, or nil.
func (t *table) lookup(id NodeID) *peer {
	if int(id) < len(t.peers) {
		return t.peers[id]
	}
	return nil
}

func (e *Endpoint) lookup(id NodeID) *peer { return e.table.Load().lookup(id) }

// newTable makes the table of nodes that were checked. Nodes whose addresses are as before keep
// their peers. The caller holds tableMu.
func (e *Endpoint) newTable(nodes []Node) (*table, error) {
	t := &table{nodes: nodes}
	if len(nodes) > 0 {
		t.peers = make([]*peer, int(nodes[len(nodes)-1].ID)+1)
	}
	var added []*peer
	for _, n := range nodes {
		p := e.lookup(n.ID)
		if p == nil || !p.hasAddresses(n.MACs[:len(e.nics)]) {
			p = newPeer(n.ID, n.MACs[:len(e.nics)])
			added = append(added, p)
		}
		t.peers[n.ID] = p
	}
	return t, e.router.resolve(added)
}
