package mcd

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Path is a way to a node: by which of the endpoint's links, and with which tag.
type Path struct {
	Node NodeID
	NIC  int
	transport.OptionalTag
}

// String formats p as "node 3 by VID 5" or "node 3 by NIC 1, no tag".
func (p Path) String() string {
	if p.NIC != 0 {
		return fmt.Sprintf("node %d by NIC %d, %v", p.Node, p.NIC, p.OptionalTag)
	}
	return fmt.Sprintf("node %d by %v", p.Node, p.OptionalTag)
}

// Path returns the way that messages to a node take now by link nic. Errors: ErrUnknownNode, a link
// that the endpoint does not have.
func (e *Endpoint) Path(node NodeID, nic int) (Path, error) {
	if err := e.checkNIC(nic); err != nil {
		return Path{}, fmt.Errorf("path to node %d: %w", node, err)
	}
	peer := e.lookup(node)
	if peer == nil {
		return Path{}, fmt.Errorf("path to node %d: %w", node, ErrUnknownNode)
	}
	tag, _ := e.router.toNeighbour(&peer.neighbours[nic])
	return Path{Node: node, NIC: nic, OptionalTag: tag}, nil
}
