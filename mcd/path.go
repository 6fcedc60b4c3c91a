package mcd

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Tagging is the tag of a frame, or that it has none.
type Tagging struct {
	Tagged bool          `json:"tagged"`
	Tag    transport.Tag `json:"tag"`
}

// Untagged is the tagging of a frame without a tag.
var Untagged = Tagging{}

// ByTag is the tagging of a frame with the given tag.
func ByTag(tag transport.Tag) Tagging { return Tagging{Tagged: true, Tag: tag} }

// String formats t as "VID 5", "VID 5 PCP 3" or "no tag".
func (t Tagging) String() string {
	switch {
	case !t.Tagged:
		return "no tag"
	case t.Tag.PCP == 0 && !t.Tag.DEI:
		return fmt.Sprintf("VID %d", t.Tag.VID)
	}
	return t.Tag.String()
}

// tci returns t as it stands in headers.
func (t Tagging) tci() uint16 {
	if !t.Tagged {
		return 0
	}
	return t.Tag.TCI()
}

func taggingOf(tagged bool, tci uint16) Tagging {
	if !tagged {
		return Untagged
	}
	return ByTag(transport.TagFromTCI(tci))
}

// Path is a way to a node: by which of the endpoint's links, and with which tag.
type Path struct {
	Node NodeID
	NIC  int
	Tagging
}

// String formats p as "node 3 by VID 5" or "node 3 by NIC 1, no tag".
func (p Path) String() string {
	if p.NIC != 0 {
		return fmt.Sprintf("node %d by NIC %d, %v", p.Node, p.NIC, p.Tagging)
	}
	return fmt.Sprintf("node %d by %v", p.Node, p.Tagging)
}

// Path returns the way that messages to a node go now by link nic. Errors: ErrUnknownNode, a link that there is not.
func (e *Endpoint) Path(node NodeID, nic int) (Path, error) {
	if nic < 0 || nic >= len(e.links) {
		return Path{}, fmt.Errorf("path to node %d: NIC %d: the endpoint has %d", node, nic, len(e.links))
	}
	peer := e.routes().lookup(node)
	if peer == nil {
		return Path{}, fmt.Errorf("path to node %d: %w", node, ErrUnknownNode)
	}
	p := Path{Node: node, NIC: nic}
	p.Tag, p.Tagged = peer.templates[nic].Tag()
	return p, nil
}
