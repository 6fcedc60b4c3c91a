// Package vlan says which VLAN tag frames to an address carry.
//
// Plain layer-2 switches keep one loop-free tree per VLAN. Where a network has several paths, each
// lies in a VLAN of its own, and the sender chooses a path by the tag that it puts on a frame:
//
//	         switch A (VID 1)
//	        /                \
//	leaf 1 +                  + leaf 2      VID 1: by way of A
//	        \                /              VID 2: by way of B
//	         switch B (VID 2)
//
// A [Router] is the sender's view of that choice: destination address in, tag out. [Untagged] and
// [Fixed] are the simplest ones. A [Table] has a route for each destination, may be changed while
// frames are sent, and counts frames. A [Destination] is a table's entry for one address, for
// senders to keep.
//
// Frames of every VID are received always, and never checked against a route: while routes change,
// both ends must keep understanding each other.
//
// The folders below hold what decides on routes, one plane each:
//
//	topology   networks, the VLANs computed for them, the configuration of their switches
//	plan       which VID each pair of nodes uses: rules, files, checks, differences
//	traffic    what each node sends to each other node: patterns, files, the load on each cable
//	optimize   the plan for a traffic
//	control    a controller that follows the traffic, a failover that follows the paths
//	manager    a node's daemon, its clients, changes of several nodes, failover's driver
//
// Source: VFREC §2, §3.
package vlan
