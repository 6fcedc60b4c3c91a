// Package vlan says which VLAN tag leads to which address.
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
// A [Router] is the sender's view of that choice: destination address in, tag out. [Untagged] and [Fixed]
// are the simplest ones. A [Template] is a frame header made once per destination from such a route.
//
// Frames of every VID are received always, and never checked against a route: while routes change, both
// ends must keep understanding each other.
//
// A [Topology] is the network itself: [FatTree] and its like make the regular ones, [ReadTopology] reads any,
// [ComputeVLANs] finds VLANs for one that has none, and [Topology.Ports] says how its switches are to be set up. What a VID
// means in it, [Topology.Path] and [Topology.Load] say.
//
// Source: VFREC §2.
package vlan
