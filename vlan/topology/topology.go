package topology

import "github.com/rawlane/rawlane/transport"

// Rate is bits per second, in each of the two directions of a cable.
type Rate float64

// Common rates.
const (
	Mbps Rate = 1e6
	Gbps Rate = 1e9
)

// Topology is what a network is made of: switches, the cables between them, the cables to its hosts, and which of them
// carries which VID. It is data; nothing in it changes by itself.
type Topology struct {
	Switches []string // names; a switch's number is its place
	Hosts    []Host   // a host's number is its place: the same as that of the node in a Plan
	Links    []Link   // between switches
	VLANs    []VLAN   // sorted by VID
}

// Host is a station and the cable that leads to it. It is in all VLANs.
type Host struct {
	Name   string
	Switch int
	Rate   Rate
}

// Link is a cable between two switches. Two switches may have several.
type Link struct {
	A, B int // switches
	Rate Rate
}

// VLAN is the part of the network in which frames of one VID travel: a tree that reaches every switch that has hosts.
type VLAN struct {
	VID   transport.VID
	Links []int // of Topology.Links, ascending
}

// Hop is a cable between switches in one of its directions: from A to B, or back.
type Hop struct {
	Link int  // of Topology.Links
	Back bool // from Links[Link].B to Links[Link].A
}
