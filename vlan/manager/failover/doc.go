// Package failover watches the paths between the nodes of a cluster, and moves pairs off VLANs that
// carry nothing any more.
//
// It drives a [control.Failover] with the probes of an endpoint of package mcd, which each node's
// endpoint answers by itself:
//
//	mcd.Endpoint  -- probes, answers -->  Driver (control.Failover)  -- moves -->  Routes: a vlan.Table, a manager.Server
//
// A program that sends by a table of its own has it watched like this, on all nodes:
//
//	d, err := failover.Start(ep, failover.Config{
//		Failover: vlan.FailoverConfig{VIDs: []transport.VID{1, 2}},
//		Routes:   failover.Table(table),
//	})
//
// What is lost between the moment that a path dies and the move is lost: package memfifo sends it
// again, and so a program that uses it sees a delay of about 200 ms.
//
// Both ends of a pair must be watched, with the same VIDs.
package failover
