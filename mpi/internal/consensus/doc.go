// Package consensus has the processes of a communicator agree on a value, although some of them
// die. It is a pure core: it does no I/O and reads no clock. Messages of one pair of processes come
// once each, and in order; Down tells who is down: nothing of it is taken any more.
//
//	member                              coordinator: the lowest rank that is not down
//	  ---- state ------------------------>   what it gives, and what was proposed to it before
//	                                         all that are not down are heard: a value
//	  <--- propose -----------------------
//	  ---- accept ----------------------->   all have it: it is decided
//	  <--- decide ------------------------
//
// If the coordinator dies, the members tell their state to the next one, and that asks them by its
// own. If one of them knows the decision, it answers with that. Else the new coordinator proposes
// what was proposed last, or if there is nothing, a value of its own.
//
// A value is decided on once all that are not down have it. So each coordinator that comes later
// hears of it, from itself if from nobody else, and proposes the same: all that return, return the
// same, also those that die just after.
//
// A process that is down to some and not to others is out if it is down to a coordinator, or to
// somebody of a lower rank that is not out: it is Excluded as soon as it asks. Where all others are
// down to it, and one of them has said that it has given the process up (GivenUpBy), nobody is left
// to ask: it is Excluded, too. Processes that take
// each other for down, and all live, may decide differently; then who has decided one way is down
// to, or out for, the one who has decided the other way.
//
// A decision is kept until the next one, to which all have contributed that have it.
//
// Source: MPI 5.0 and ULFM, MPI_Comm_agree; T. Herault et al., Practical Scalable Consensus for
// Pseudo-Synchronous Distributed Systems, SC 2015; T. Chandra, S. Toueg, Unreliable Failure
// Detectors for Reliable Distributed Systems, JACM 43 (1996), §6.1.
package consensus
