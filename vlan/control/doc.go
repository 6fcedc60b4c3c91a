// Package control decides which pairs of nodes change their VID in a running network, and why.
//
// A [Controller] is told what the nodes send, and says which pairs should change. A [Failover] is
// told which paths answer probes, and says which pairs must leave theirs. Both are cores: time
// comes in as an argument, and they send nothing. Package coordinator drives a Controller, package
// failover a Failover; both are in vlan/manager.
//
// Source: VFREC §3.2.
package control
