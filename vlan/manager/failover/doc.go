// Package failover watches the paths between the nodes of a cluster, and moves pairs off VLANs that
// carry no frames any more.
//
// A [Driver] gives a [control.Failover] its clock, its probes and its routes: the probes of an
// endpoint of package mcd, which each node's endpoint answers by itself, and the routes of a table
// or a manager.
//
//	mcd.Endpoint ── probes, answers ──> Driver ── moves ──> vlan.Table, server.Server
//
// A program that sends by a table of its own has it watched like this, on all nodes:
//
//	d, err := failover.Start(ep, failover.Config{
//		Failover: control.FailoverConfig{VIDs: []transport.VID{1, 2}},
//		Routes:   failover.Table(table),
//	})
//
// Frames that are sent between a path's failure and the move are lost. Package memfifo sends them
// again: a program that uses it sees a delay of about 200 ms.
//
// Both ends of a pair must be watched, with the same VIDs.
package failover
