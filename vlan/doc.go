// Package vlan says which VLAN tag leads to which address, and which should.
//
// Plain layer-2 switches keep one loop-free tree per VLAN. Where a network has several paths, each lies in
// a VLAN of its own, and the sender chooses among them by the tag it puts on a frame:
//
//	         switch A (VID 1)
//	        /                \
//	leaf 1 +                  + leaf 2      VID 1: by way of A
//	        \                /              VID 2: by way of B
//	         switch B (VID 2)
//
// # Sending
//
// A [Router] is the sender's view of that choice: destination address in, tag out. [Untagged] and [Fixed]
// are the simplest ones. A [Table] has a route for each destination, may be changed while frames are sent, and counts them. A
// [Template] is a frame header made once per destination from such a route.
//
// Frames of every VID are received always, and never checked against a route: while routes change, both
// ends must keep understanding each other.
//
// # Planning
//
// Both directions between two nodes must use one VID. Switches learn addresses per VID: where nobody sends back with the
// VID of a frame, they flood it, each time. So what is planned is pairs. A [Plan] gives each node a default VID and a
// priority; a pair uses the default of the one with priority, unless it is listed as an exception. [Plan.Routes] is what a
// node's table holds, and any two nodes that follow one plan agree.
//
//	a file, ParsePlan ─┐                              ┌─ Plan.Routes(0) ── Table of node 0
//	           Cyclic ─┼─ Plan ── Plan.Check(network) ┼─ Plan.Routes(1) ── Table of node 1
//	         Optimize ─┘                              └─ ...
//
// A [Topology] is the network that a plan is for: switches, cables, hosts, and the tree of each VID. [FatTree] and its like make
// the regular ones, [ReadTopology] reads any, [ComputeVLANs] finds VLANs for one that has none, and [Topology.Ports] says how
// its switches are to be set up. What a VID means in it, [Topology.Path] and [Topology.Load] say. [Optimize] makes a plan
// for known [Traffic].
//
// # Running
//
// A [Controller] is told what the nodes send, and says which pairs should change, and why. A [Failover] is told which paths answer, and
// says which pairs must leave theirs.
//
// All of this computes and does nothing else: no packet is sent and no clock read here. Package vlan/manager carries plans and
// the controller's decisions out in a running cluster, and package vlan/failover those of a failover.
//
// Source: VFREC §2, §3.
package vlan
