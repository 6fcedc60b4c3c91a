// Package mbcf has the experiments of MPI/MBCF with two workstations, as a model in virtual time:
// the round trips of its table 1, the streams of table 2, and those of MBCF itself.
//
//	full duplex   host ---cable--- switch ---cable--- host   store and forward; both ways at once
//	half duplex   host ------------- hub ------------ host   one frame at a time: CSMA/CD
//
// A message is cut into frames, each of which is on a cable, or on the hub, for as long as its bits
// take. The receiver acknowledges frames, and the sender has a few under way, as MBCF itself
// guarantees arrival and order (MBCF §2.1, items 3 and 6). On the hub acknowledgements and data
// collide, and both stations back off as IEEE 802.3 has it. Nothing is lost otherwise.
//
// Table 1 and the latency of MBCF are taken to be through the switch, which the paper does not say:
// between 256 and 1,024 bytes a byte takes 0.176 us one way, and a cable's is 0.08.
//
// What hosts cost the paper does not tell. [Fitted] returns the parameters that were chosen so that
// the results come near to the paper's; bits, headers of Ethernet and backoff are the standard's.
// So the model tells that the tables follow from these few costs and the wire, and no more: it is
// not a prediction. docs/papers/mbcf.md has its output.
//
// Source: MBCF §2.1, §2.3.
package mbcf
