// Package l2switch is a VLAN-aware learning switch (IEEE 802.1Q) and a repeater, as pure functions
// of the frames that come in: no I/O, no goroutine, no clock.
//
//	frame in on a port
//	   |  accept?     the port's frame types; 01:80:c2:00:00:0x stays on its segment
//	   |  classify    tagged: its VID; untagged or VID 0: the port's PVID
//	   |  ingress     is the port a member of that VID?
//	   v
//	 learn            (VID, source) is behind this port, as of now
//	   |
//	   |  look up     (VID, destination): one port, or not known, or a group
//	   v
//	 egress           known: that port. Otherwise flood: every other member of the VID
//	   |  tag         per port and VID: leave tagged, untagged, or as it came
//	   v
//	records of (port, tag), appended to the caller's slice; the payload is never touched
//
// Learning is independent per VID (IVL): an address learned on one VID is not known on another. If
// two stations use different VIDs in the two directions, their frames are flooded for ever (VFREC
// §4.3). There is no spanning tree: the user of the package keeps each VID free of loops, as
// package fabric does.
//
// A Switch is not safe for concurrent use.
package l2switch
