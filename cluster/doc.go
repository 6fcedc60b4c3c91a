// Package cluster finds out which nodes a cluster has: from a host file, or by discovery on the
// wire.
//
//	link, err := ring.Open("eth0", ring.Config{})
//	ep, err := mcd.Open(mcd.Config{Cluster: 1, Node: 2}, link)
//	m, err := cluster.Join(ctx, ep, cluster.Config{Nodes: 8})
//	defer m.Close()
//	// ep's node table is complete: send.
//
// Each node broadcasts an announcement on every network that it is attached to, until it has heard
// all others:
//
//	node 2                        node 5
//	  "I am 2, seeking"   ------->
//	                      <-------  "I am 5, seeking"
//	  "I am 2, complete"  ------->  (when the last of the others was heard)
//
// A node that has heard all others listens for conflicts for 5 ms more. Then it is complete, and
// answers nodes that come late, as long as its Membership is open: also one that begins anew, at
// the address that it had. Nodes that still seek let one in that begins anew at another address,
// once it was silent at the first one for 750 ms. Discovery needs a number for each node, 0 to n-1,
// the number n, and a network that passes broadcasts. It needs no IP and no names.
//
// Join reports two nodes with one number, also of a machine and its clone with one address, and two
// numbers with one address (mcd.ErrConflict, with both addresses), and nodes that expect another
// number of nodes or networks (ErrMismatch). When the context ends, it reports which nodes were
// heard, which are missing, and whether one uses another version of the wire format
// (ErrIncomplete).
//
// Without a key (mcd.Config.KeyFile) discovery does not authenticate: any station on the segment
// can claim a number that is free. With one, any holder of the key can.
//
// An Exchanger passes small amounts of data among the nodes once they know each other, such as the
// keys of windows at the start and results at the end. It asks until it is answered:
//
//	x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{})
//	keys, err := x.Exchange(ctx, ownKey)       // every node gets every node's
//	results, err := x.Gather(ctx, 0, ownResult) // node 0 gets every node's
//	defer x.Close()
//
// The bytes of both are in docs/wire-format.md.
package cluster
