// Package matching decides which message goes into which receive, and by which way: MPI's rules and
// MBCF's protocol. It is a pure core: it does no I/O, reads no clock and touches no data.
//
// A driver calls Post with each receive, Send with each send and Handle with each record that came,
// and carries out what they append, in order. Records of one pair of processes come once each, and
// in order.
//
//	sender                                  receiver
//	                 <---- offer ---------  a long receive is posted, nothing matches yet
//	write, done      --------------------->  it is complete: no copy in between
//
//	eager            --------------------->  into the receive that matches, or kept
//	                 <---- credit --------   when half of it was used up
//
//	request to send  --------------------->  matched now or later; read at the sender
//	                 <---- matched --------
//
// # Offers
//
// A receive from one source may be offered to it: then the sender writes into its memory. An offer
// and a message can cross. The receiver takes the message, which comes first, and offers nothing
// anew: the offer says how many messages the receiver had taken when it was made, so the sender
// knows which ones it has crossed, finds those that the receive matches in their order, and drops
// the offers of the receives that they have gone into. Both ends come to the same without a word.
//
// For that a receive is not offered as long as an earlier one that was not offered overlaps it: one
// from any source for instance. The paper rejects each offer that has crossed any message, and
// never offers behind one.
//
// A collective operation's receive comes sooner or later, and its sender knows: such a send waits
// for the offer, for a while.
//
// # Credit
//
// A message costs its sender one header of credit, and an eager one its bytes. What is kept is paid
// for, so a receiver that posts nothing keeps a bounded amount. A send without credit waits at the
// sender, which tells the receiver so. The receiver grants further headers as long as it has a
// receive, or a probe, that the sender might meet, and each time that it asks for one: so a message
// is found behind any number of others.
//
// Source: MBCF §2.2; MPI 5.0 §3.5 (order, progress), §3.8 (probe, cancel).
package matching
