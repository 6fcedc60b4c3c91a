// Package auth decides which frames of a link to believe, and makes frames that others believe.
//
// Every sender has a key of its own, derived from the cluster's key, its random incarnation and its
// address. A frame carries the incarnation, a counter that grows, and a tag (AES-GCM) over all of
// it. A receiver checks the tag first, then that the counter is new (a sliding window, RFC 6479).
//
// A tag and a counter do not tell a frame of now from one that was recorded before the receiver was
// started. So a receiver believes no incarnation before it has proved to be alive: it sends a
// challenge, a random number, to the sender's address, and the sender repeats it in a frame that
// only a holder of the cluster's key can make.
//
//	S (just opened)                         R (knows nothing of S)
//	data, incarnation i    --------------->  tag valid, i unknown: kept
//	                       <---------------  contact: challenge r
//	contact: response r, challenge s  ---->  i is alive: what was kept is delivered
//	is alive there         <---------------  contact: response s
//
// # States of an incarnation
//
//	state      event                       next       what is done
//	-          frame, tag valid            Asked      kept; challenge to its address
//	-          response to a challenge     Fresh      -
//	Asked      frame, tag valid, new       Asked      kept, up to a bound
//	Asked      response to a challenge     Fresh      what was kept is delivered, in order
//	Asked      no response for askLife     Silent     what was kept is dropped
//	Asked      others need the room        Asked      what was kept is dropped, first come first
//	Silent     frame, within silence       Silent     dropped, unread
//	Silent     frame, later, tag valid     Asked      kept; challenge
//	Silent     response to a challenge     Fresh      -
//	Fresh      frame, tag valid, new       Fresh      delivered
//	Fresh      another one of its address  Suspended  -
//	           proves to be alive, the first time
//	Suspended  frame, tag valid, new       Asked      kept; challenge
//
// Two processes may share an address, and are both alive: each is asked once when the other
// appears. One that was restarted never answers for its former incarnation.
//
// A frame without a valid tag changes nothing and is answered by nothing. Deriving a key costs as
// much as receiving ten frames, so that keys of incarnations that have proved nothing are derived
// at a bounded rate; what is over the budget is dropped. Contact frames need no derivation, and so
// get through whatever else arrives: they are sealed with a key that all nodes have.
//
// # Where an address is
//
// On a link whose stations may move (transport.Roamer) a challenge may go to several places, of
// which the link says. A response has a sum over the place that it leaves, which a relay that sends
// it on from elsewhere cannot change.
package auth
