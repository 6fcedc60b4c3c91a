// Package coordinator changes the plans of several nodes together, by their managers.
//
// While the two ends of a pair use different VIDs, switches flood its frames. [Apply] has all
// managers agree to a plan before any changes to it, and keeps that time short. [Survey] says which
// plan each node has, [Previous] which one all had before. [Control] reads all counters, period by
// period, and applies what a [control.Controller] decides.
//
// A coordinator keeps no state: its protocol is two-phase commit with a lease, and applying a plan
// again mends whatever a failure has left.
//
// Source: VFREC §3.2, §4.3.
package coordinator
