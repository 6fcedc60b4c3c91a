// Package topology describes networks of layer-2 switches: what is cabled to what, and which cable
// carries which VLAN.
//
// A [Topology] is data. [FatTree] and its like make the regular ones, [Parse] makes them from a
// spec such as vbft:4x4x4, and [Read] reads any network from a file. [ComputeVLANs] finds VLANs for
// a network without any. [Paths] says which links frames of a VID cross, and [Topology.Ports] how
// the switches are to be configured.
//
// Nothing here sends a packet.
//
// Source: VFREC §2.
package topology
