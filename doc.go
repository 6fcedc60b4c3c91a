// Package rawlane is messaging over raw Ethernet for programs on a cluster of ordinary NICs and switches.
//
// The module's packages, from the wire up:
//
//   - transport: a link, one attachment to an Ethernet segment; fabric (in memory), packet and ring (Linux)
//   - vlan: which VLAN tag leads to which address
//   - mcd: nodes, ports, multicast groups, descriptors
//   - cluster: who the nodes are: host file, discovery
//
// Begin with the README, examples/hello and package mcd.
package rawlane
