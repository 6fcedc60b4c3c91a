package pathtest

import (
	"fmt"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// Kind is a kind of fault.
type Kind string

// The kinds.
const (
	Loop        Kind = "loop"              // a broadcast comes back to its sender, or a frame arrives more than once
	BlackHole   Kind = "black hole"        // a node answers by other VIDs, and not by this one, in either direction
	OneWay      Kind = "one-way"           // frames arrive by this VID in one direction only
	Unreachable Kind = "unreachable"       // a node answers by no VID
	Duplicate   Kind = "duplicate address" // two nodes have one address, or one number
	TagChanged  Kind = "tag changed"       // frames arrive with another tag than they were sent with
	MTU         Kind = "MTU"               // full frames do not pass
)

// Fault is something that is wrong with the network, as one node sees it.
type Fault struct {
	Kind Kind
	From mcd.NodeID // the node that found it
	// To is the other node, or From if the fault is not between two nodes.
	To  mcd.NodeID
	NIC int
	By  transport.OptionalTag
	// Count is how often a frame arrived (loop). Of Want bytes of a frame's payload, Bytes pass
	// (MTU).
	Count       int
	Bytes, Want int
	// Toward says which direction is dead (one-way), or changes tags (tag changed): true is that to
	// To.
	Toward bool
	Arrive transport.OptionalTag // the tag that frames arrive with (tag changed)
	MACs   []transport.MAC       // the address in question (duplicate address)
	Nodes  []mcd.NodeID          // the nodes that answered for it
}

// String describes f on one line, with what to look at. It is the same on both nodes of a pair.
func (f Fault) String() string {
	low, high := min(f.From, f.To), max(f.From, f.To)
	from, to := f.To, f.From
	if f.Toward {
		from, to = f.From, f.To
	}
	switch f.Kind {
	case Loop:
		if f.To == f.From {
			return fmt.Sprintf("loop: a broadcast of node %d by %v came back %d times"+
				" (find the cable that closes it; is spanning tree off?)",
				f.From, f.By, f.Count)
		}
		return fmt.Sprintf("loop: node %d answered one probe of node %d by %v %d times"+
			" (two ways to it: is a port mirrored, or spanning tree off?)",
			f.To, f.From, f.By, f.Count)
	case BlackHole:
		return fmt.Sprintf("black hole: nodes %d and %d hear nothing of each other by %v, and do by others"+
			" (is it allowed on all trunks between them?)",
			low, high, f.By)
	case OneWay:
		return fmt.Sprintf("one-way: frames of node %d by %v do not reach node %d; the other direction works"+
			" (is it allowed at both ends of each trunk?)",
			from, f.By, to)
	case Unreachable:
		return fmt.Sprintf("unreachable: node %d hears nothing of node %d by any VID"+
			" (is its cable in, and its program running?)",
			f.From, f.To)
	case Duplicate:
		return fmt.Sprintf("duplicate address: nodes %v answer at %v"+
			" (a cloned machine? Give each its own address and number)",
			f.Nodes, f.MACs)
	case TagChanged:
		return fmt.Sprintf("tag changed: what node %d sends to node %d by %v arrives with %v"+
			" (an access port, or VLAN translation, on the way; or a receiver's driver: rawlane doctor)",
			from, to, f.By, f.Arrive)
	case MTU:
		return fmt.Sprintf("MTU: between nodes %d and %d by %v frames of %d bytes pass, and of %d do not"+
			" (set the MTU of the switches, and of both nodes' NICs, to %d at least)",
			low, high, f.By, f.Bytes, f.Want, f.Want)
	}
	return string(f.Kind)
}

// Record is a fault as JSON.
type Record struct {
	Kind   Kind            `json:"kind"`
	From   mcd.NodeID      `json:"from"`
	To     mcd.NodeID      `json:"to"`
	NIC    int             `json:"nic"`
	Tagged bool            `json:"tagged"`
	VID    transport.VID   `json:"vid"`
	Count  int             `json:"count,omitempty"`
	Bytes  int             `json:"bytes,omitempty"`
	Want   int             `json:"want,omitempty"`
	MACs   []transport.MAC `json:"macs,omitempty"`
	Nodes  []mcd.NodeID    `json:"nodes,omitempty"`
	Text   string          `json:"text"`
}

// Record returns f's form in JSON.
func (f Fault) Record() Record {
	return Record{f.Kind, f.From, f.To, f.NIC, f.By.Tagged, f.By.Tag.VID,
		f.Count, f.Bytes, f.Want, f.MACs, f.Nodes, f.String()}
}
