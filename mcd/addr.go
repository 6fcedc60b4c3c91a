package mcd

import (
	"fmt"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// PortID is a port's number on its node: 0 to 255.
type PortID uint8

// GroupID is a multicast group's number in its cluster.
type GroupID uint16

// Addr is a port of a node. It is comparable.
type Addr struct {
	Node NodeID
	Port PortID
}

// String formats a as "3:7", node and port.
func (a Addr) String() string { return fmt.Sprintf("%d:%d", a.Node, a.Port) }

// Dest is a message's destination. Make one with To, ToGroup or ToAll: nothing is sent to the zero
// Dest.
type Dest struct {
	kind wire.Kind
	to   uint16
	port PortID
}

// To is one port of one node.
func To(a Addr) Dest { return Dest{wire.Unicast, uint16(a.Node), a.Port} }

// ToGroup is one port of every other node that joined the group.
func ToGroup(g GroupID, port PortID) Dest { return Dest{wire.Multicast, uint16(g), port} }

// ToAll is one port of every other node of the cluster on the segment.
func ToAll(port PortID) Dest { return Dest{wire.Broadcast, wire.AllNodes, port} }

// String formats d as "3:7", "group 5:7" or "all:7".
func (d Dest) String() string {
	switch d.kind {
	case wire.Unicast:
		return Addr{NodeID(d.to), d.port}.String()
	case wire.Multicast:
		return fmt.Sprintf("group %d:%d", d.to, d.port)
	case wire.Broadcast:
		return fmt.Sprintf("all:%d", d.port)
	}
	return "nobody"
}

// check refuses the zero Dest: a frame would go to all, and be dropped by each.
func (d Dest) check() error {
	if d == (Dest{}) {
		return errNobody
	}
	return nil
}

// GroupMAC returns the Ethernet address of a cluster's multicast group: locally administered, with
// the cluster's id folded to 16 bits. The header tells clusters apart that fold alike.
func GroupMAC(c ClusterID, g GroupID) transport.MAC {
	fold := uint16(c>>16) ^ uint16(c)
	return transport.MAC{0x03, 'R', byte(fold >> 8), byte(fold), byte(g >> 8), byte(g)}
}
