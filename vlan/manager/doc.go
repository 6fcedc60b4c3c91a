// Package manager connects programs and operators to the managers of VLAN routes, one of which runs
// on each node: rawlane manager.
//
// In a program, [Dial] begins a [Session]. Its [Session.Table] is the table that the program sends
// by; [Session.SetRoute] changes a pair from the next frame on, until the session ends. With a
// [Drainer], no message to a node that answers overtakes another across a change. If the manager is
// lost the table stays in force, and the session comes back by itself.
//
//	s, err := manager.Dial(ctx, "unix", manager.DefaultSocket)
//	ep, err := mcd.Open(mcd.Config{Node: self, Nodes: nodes, Router: s.Table()}, link)
//	s.DrainWith(mcd.AddressDrain{Endpoint: ep}) // if order matters
//	err = s.SetRoute(ctx, macs[0], macs[2], 2)  // and the program on the other node as well
//
// A [Client] makes the requests of docs/manager-api.md, whose answers and errors are in package
// api.
//
//	server       the daemon: the plan and the routes of one node
//	coordinator  a change of several nodes at once; a network that chooses its routes by itself
//	failover     watches paths, and moves pairs off those that are down
//	api          requests, answers and errors as Go types
//
// A request that is refused has changed nothing. A manager that is killed, in whichever step, comes
// back with the plan before or the plan after. Nothing is promised of other nodes: a program that
// wants both ends of a pair changed asks both managers.
//
// docs/decisions/062-the-manager.md has the reasons. Source: VFREC §4.
package manager
