// Package control decides which pairs of nodes change their VID in a running network, and why.
//
// A [Controller] is told what the nodes send, and says which pairs should change. A [Failover] is
// told which paths answer probes, and says which pairs must leave theirs. Both are cores: time
// comes in as an argument, and they send nothing. Package vlan/manager drives a Controller, and
// package vlan/failover a Failover.
//
// Source: VFREC §3.2.
package control
