// Package server is the manager of a node's VLAN routes: rawlane manager runs one.
//
// A [Server] holds the node's plan, what the operator and programs ask for over it, and the
// overrides of a failover. The routes in force follow from these three, and each of the node's
// programs is told of a change at once.
//
//	operator ─── PUT /v1/table ────┐          ┌── events ── manager.Session ── vlan.Table
//	coordinator ── prepare, commit ┤  Server  ┤
//	failover ── Server.Override ───┘          └── events ── manager.Session ── vlan.Table
//
// docs/manager-api.md describes its requests, docs/decisions/062-the-manager.md the reasons.
//
// Source: VFREC §4.
package server
