// Package barrier makes the members of a group wait for each other: nobody leaves a barrier before all have entered.
//
//	g, err := barrier.NewGroup(ep, barrier.Config{})    // all nodes of the endpoint's table
//	err = g.Barrier(ctx)                                // waits for all others
//
//	t, err := g.Arrive()                                // or in two phases: a fuzzy barrier
//	...                                                 // work that need not wait
//	err = t.Wait(ctx)
//
// # Algorithms
//
// Who tells whom is a schedule: see package schedule for the shuffle exchange, trees, the concurrent barrier, several NICs
// and hierarchies, and for how Auto, the default, chooses. All members must give the same.
//
// # What is promised
//
// A member leaves generation g of a barrier only if all members have entered it, whatever frames are lost, doubled,
// delayed, reordered or corrupted. A lost frame costs milliseconds: the side that waits asks again. Without
// loss no frame is sent but the schedule's.
//
// A wait ends. If a member is silent for longer than Config.Limit, or says goodbye (Close), or has lost its memory, all
// others get an error that names it (ErrNodeDown), and Group.Without makes a group without it. Members that
// contradict each other get ErrMismatch. A context that ends gives ErrIncomplete, which says who is missing; the
// barrier stays entered.
//
// Not promised: that all members get the same answer. If a member dies at the very end of a barrier, some may have left
// it, and others report the death.
//
// # Identity
//
// A barrier is told apart by its group (Config.ID and the members, in the order of creation on each node), the mask of a
// call, and a number (Options.Number): so groups that overlap, and 256 barriers of each, can be in progress at one
// time.
//
// Source: MCD §3-5, SCMD §3-4.
package barrier
