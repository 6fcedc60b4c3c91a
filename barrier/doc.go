// Package barrier makes the members of a group wait for each other: no member leaves a barrier
// before all have entered it.
//
//	s, err := barrier.Open(ep, barrier.Config{})     // once for an endpoint
//	g, err := s.Group(barrier.GroupConfig{})         // all nodes of the endpoint's table
//	err = g.Barrier(ctx)                             // waits for all others
//
//	t, err := g.Arrive()                             // or in two phases: a fuzzy barrier
//	...                                              // work that need not wait
//	err = t.Wait(ctx)
//
// # Algorithms
//
// A schedule says which messages each member awaits and which it sends then: see package schedule
// for the shuffle exchange, trees, the concurrent barrier, several NICs and hierarchies, and for
// how Auto, the default, chooses. All members must give the same algorithm.
//
// With schedule.Offload the first member, the Center, may have its arrivals counted in the path of
// its NIC, and the others released from there, while its process computes: see package offload and
// Config.Unit.
//
// # What is promised
//
// A member leaves generation g of a barrier only if all members have entered it, whatever frames
// are lost, doubled, delayed, reordered or corrupted. A lost frame costs milliseconds: the member
// that waits sends a nack. As long as no frame is lost and no member is late, no frame is sent but
// the schedule's; a member that is late is asked now and then, ever more seldom, whether it lives:
// up to a twentieth of the peer timeout apart, which is then what a lost frame costs.
//
// A wait ends. If members are silent for longer than GroupConfig.PeerTimeout, or say goodbye
// (Close), or have begun anew, all others agree on which ones those are, and get an error that
// names them (ErrNodeDown). Members with different algorithms get ErrMismatch. A context that ends
// gives ErrIncomplete, which names the nodes awaited; the barrier stays entered, and the next
// Barrier of its number resumes it.
//
// # Survivors agree
//
// All members that get ErrNodeDown for one group get the same nodes, however many die, also while
// the others agree; so Group.Without gives all of them the same group. The one exception: if two
// members are told different nodes, one of them is among the other's. That happens if a network
// falls into parts for longer than the peer timeout. Each part then goes on without the others, or,
// with GroupConfig.Quorum, one at most does. No barrier is completed across: each needs all of its
// group's members.
//
// A member that stands still for less than the peer timeout is not taken for gone. Before a member
// is, it is asked by all networks, and by other VLANs (Config.Detours): if it answers by those
// alone, it is spared for two more timeouts, in which a failover may change its route. A member
// that stood still for longer learns that the others go on without it (ErrExcluded), also if it has
// decided alone meanwhile: then in the group that Without gives it. It closes the group, and so may
// they, and all make it anew; a process that began anew joins as well. If that runs at another
// place than before, and they made the group before it came, their algorithm may be another one
// than it chooses, and all get ErrMismatch: they close the group, and make it anew, now with its
// place.
//
// Not promised: that all members get the same answer to one barrier. If a member dies at the very
// end of a barrier, some may have left it while others report the death. A mask's members agree
// among themselves alone, but who has left the group is gone from its masks. If more than 400
// members are gone, or than a frame shorter than Ethernet's names, each other one goes on without
// those that it knows of, and may fail once more for the rest. And members that wait for each other
// in different barriers wait until their contexts end, as other goroutines of theirs may still
// come: GroupConfig.Late has such barriers logged, with the nodes that have not entered.
//
// # Identity
//
// A barrier is identified by its group (GroupConfig.ID and the members, in the order of creation
// on each node), the mask of a call, and a number (Options.Number). So groups that overlap, and
// 256 barriers of each, can be in progress at one time. A process that began anew counts its
// groups from the beginning; the other members tell it how many it has missed.
//
// Source: MCD §3-5, SCMD §3-4.
package barrier
