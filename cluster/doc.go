// Package cluster says who the nodes of a cluster are: from a host file, or by discovery on the wire.
//
//	link, err := ring.Open("eth0", ring.Config{})
//	ep, err := mcd.Open(mcd.Config{Cluster: 1, Node: 2}, link)
//	m, err := cluster.Join(ctx, ep, cluster.Config{Nodes: 8})
//	defer m.Close()
//	// ep's node table is complete: send.
//
// Each node broadcasts who it is, over every network that it is attached to, until it has heard all others:
//
//	node 2                        node 5
//	  "I am 2, seeking"  ------->
//	                     <-------   "I am 5, seeking"
//	  "I am 2, met"      ------->   (when the last of the others was heard)
//
// A node that has heard all others listens for 5 ms more: two of one number may have started at one time. Then it has
// met, and goes on to answer those who come late, as long as its Membership is open.
// Needed are: a number for each node, 0 to n-1; the number n; and that broadcasts pass. Neither IP nor names are.
//
// What is reported: two nodes of one number and two numbers with one address (mcd.ErrConflict, with both
// addresses), nodes that expect another number of nodes or networks, and, when the context ends, who was heard, who is
// missing, and who spoke another version of the wire format (ErrIncomplete).
//
// What is not: who may join. Whoever can send frames on the segment can claim a number that is free.
//
// The announcement's bytes are in docs/wire-format.md.
package cluster
