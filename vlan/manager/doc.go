// Package manager holds the VLAN routes of a node, and changes them while its programs run.
//
// Each node has a manager, a [Server]: rawlane manager runs one. It knows the plan, what programs and operators want over it, and which paths
// are dead; of these follows what the node sends by, and each of the node's programs hears of a change at once.
//
//	operator, curl ─── PUT /v1/table ───┐                       ┌── lines ── Session ── vlan.Table ── program
//	Apply, Control ── prepare, commit ──┤ HTTP + JSON ── Server ┤
//	failover ─────── Server.Force ──────┘                       └── lines ── Session ── vlan.Table ── program
//
// # In a program
//
// [Dial] begins a session. Its [Session.Table] is what the program sends by; [Session.SetRoute] changes a pair, from the next frame
// on, until the session ends; a [Transaction] changes many. With a [Fencer], no message overtakes another across a change. Where the manager
// is lost the table stays as it is, and the session comes back by itself.
//
//	s, err := manager.Dial(ctx, "unix", manager.DefaultSocket)
//	ep, err := mcd.Open(mcd.Config{Node: self, Nodes: nodes, Router: s.Table()}, link)
//	s.FenceWith(mcd.AddressDrain{Endpoint: ep}) // if order matters
//	err = s.SetRoute(ctx, macs[0], macs[2], 2) // and the program on the other node as well
//
// # Of a whole cluster
//
// Between the changes of a pair's two ends its frames flood. [Apply] has all managers agree to a plan before any changes to it, and
// keeps that time short. [Control] reads all counters, period by period, and applies what a [control.Controller] decides.
//
// # What is promised
//
// A request that is refused has changed nothing. A manager that is killed, in whichever step, comes back with the plan before
// or the plan after. Nothing is promised of the other nodes: who wants both ends of a pair changed asks both.
//
// What goes over the wire is in docs/manager-api.md, and why it is so in docs/decisions/062-the-manager.md.
//
// Source: VFREC §4.
package manager
