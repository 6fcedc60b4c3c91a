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
// # What is promised
//
// A member leaves generation g of a barrier only if all members have entered it, whatever frames
// are lost, doubled, delayed, reordered or corrupted. A lost frame costs milliseconds: the member
// that waits sends a nack. As long as no frame is lost and no member is late, no frame is sent but
// the schedule's; a member that is late is asked now and then, ever more seldom, whether it lives.
//
// A wait ends. If a member is silent for longer than GroupConfig.PeerTimeout, or says goodbye
// (Close), or has begun anew, all others get an error that names it (ErrNodeDown), and
// Group.Without makes a group without it. Members with different algorithms get ErrMismatch. A
// context that ends gives ErrIncomplete, which names the nodes awaited; the barrier stays
// entered, and the next Barrier of its number resumes it.
//
// Not promised: that all members get the same answer. If a member dies at the very end of a
// barrier, some may have left it while others report the death. And members that wait for each
// other in different barriers wait until their contexts end, as other goroutines of theirs may
// still come: GroupConfig.Late has such barriers logged, with the nodes that have not entered.
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
