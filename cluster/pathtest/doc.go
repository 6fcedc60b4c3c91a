// Package pathtest measures the paths between the nodes of a cluster, and finds what is wrong with them.
//
// It sends probes, which each node's endpoint answers by itself: no program need run there but one that has an endpoint open.
//
//	Measure   how long a path is, and what it carries
//	Sweep     by which VIDs a node can be reached
//	Check     loops, black holes, one-way paths, duplicate addresses, changed tags, MTU mismatches
//
// Each looks from one node. What all nodes see is put together by whoever asks them all: rawlane matrix does.
package pathtest
