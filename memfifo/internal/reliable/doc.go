// Package reliable delivers frames of records to one peer, each once and in order, over a network
// that loses, duplicates, delays and reorders frames. It is a pure core: it does no I/O and reads
// no clock.
//
//	Reserve -> frame being filled -> NextBatch, kept -> acknowledged      sender, one a lane
//	                                   |   ^
//	                             lost? +---+  SACK and credit
//	                                          |
//	Handle, Deliver <- in order <- reorder window <- frame                receiver, one a lane
//
// A driver calls Handle with each received frame, Advance when Deadline has passed, and then
// NextBatch until it returns nothing.
//
// A connection is in one of four states:
//
//	state        event                          next         sends
//	Idle         NextBatch, with data           Handshaking  hello
//	Handshaking  deadline                       Handshaking  hello, at intervals that double
//	any          hello                          same         hello ack; a challenge if unknown
//	any          hello ack with a challenge     same         hello ack
//	Handshaking  hello ack with the response    Open         what is queued
//	Idle         hello ack with the response    Open         -
//	Open         hello ack, new incarnation     Open         -; PeerRestarted
//	Open         deadline                       Open         unacknowledged data, or a probe
//	Open         Close                          Closing      what may go, then a bye
//	Closing      deadline                       Closing      the bye, maxByes times; then Idle
//	Closing      bye ack                        Idle         -
//	Closing      bye                            Idle         bye ack
//	Open         bye                            Idle         bye ack; PeerClosed
//	any          bye, stale incarnation         same         bye ack
//	any          frame, stale incarnation       same         hello
//	any          peer timeout                   Idle         -; PeerSilent
//	Open         data timeout                   Idle         -; DataLost
//
// PeerRestarted, PeerClosed, PeerSilent and DataLost end what was queued or in flight: it may have
// been delivered or not, and is not sent to the next incarnation. The last three begin a new local
// incarnation.
//
// An incarnation is a random number that names one life of one end. Data counts only if it names
// the current incarnations of both ends, so frames of a former connection do no harm, and a
// restart shows in the first frame. An end believes an incarnation of its peer only from a hello
// ack with the response to its current challenge, as RFC 9000 §8.2 validates a path: a late hello
// of a dead process proves nothing.
//
// A bye names both incarnations, too, and so does its answer, which takes no state: who has
// forgotten the connection answers as well. A peer that hears none of them, or whose answers are
// all lost, finds out by the peer timeout.
//
// Source: MBCF §2.1 (guaranteed arrival and order), CENJU §3; RFC 9293, 9000, 9002.
package reliable
