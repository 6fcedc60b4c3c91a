// Package pathtest measures the paths between the nodes of a cluster and finds what is wrong with
// them.
//
// It sends probes, which each node's endpoint answers by itself: any program with an open endpoint
// will do on the other nodes.
//
//	Measure   a path's round-trip time
//	EchoRate  the bytes a second that a path carries
//	Sweep     the VIDs by which a node can be reached
//	Check     loops, black holes, one-way paths, duplicate addresses, changed tags, MTU mismatches
//
// Each works from one node. rawlane matrix runs them on all nodes and combines the results.
package pathtest
