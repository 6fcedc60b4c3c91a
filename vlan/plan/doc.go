// Package plan says which VID each pair of nodes uses.
//
// Both directions between two nodes must use one VID. Switches learn addresses per VID: where
// nobody sends back with the VID of a frame, they flood it, each time. So routes belong to pairs. A
// [Plan] gives each node a default VID and a priority; a pair uses the default of the node with
// priority, unless the pair is listed as an exception. [Plan.Routes] is what a node's table holds,
// and any two nodes that follow one plan agree.
//
//	a file, Parse ─┐                                  ┌─ Plan.Routes(0) ── vlan.Table of node 0
//	   RoundRobin ─┼─ Plan ── Plan.Check(topology) ───┼─ Plan.Routes(1) ── vlan.Table of node 1
//	optimize.Plan ─┘                                  └─ ...
//
// Source: VFREC §2.3.
package plan
