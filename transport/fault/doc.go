// Package fault makes a link lossy. It loses, duplicates, reorders, delays, corrupts and truncates
// received frames, by chance from a seed, and cuts the cable.
//
//	rng := rand.New(rand.NewPCG(seed, 0))
//	cfg := fault.Config{Loss: 0.01, Delay: 0.1, DelayMax: time.Millisecond}
//	link, err = fault.New(link, rng, cfg)
//
// Faults happen where frames are received: wrap the link of each node that is to suffer. Random
// numbers are drawn in the order in which Poll takes frames from the inner link, so the same seed
// and the same frames give the same faults. Each fault is counted.
//
//	inner link -> cut? lost? -> duplicated? -> truncated? corrupted? -> delayed? reordered?
//	                               |                                       |           |
//	                               +-- unaltered copy, at the end          |           +--> Poll
//	                                   of the batch                        +-- delay queue,
//	                                                                           until due
//
// A frame in the delay queue ends a Wait when it is due; frames that are not delayed keep their
// order. In a test under testing/synctest the delays are in virtual time. Altered frames are
// copies, so the other receivers of a broadcast, or a capture inside, see the frame as it was.
// Copies say where their frame came from, so stations can prove themselves, and move, by frames
// that are late: of the last 256 that come from elsewhere than their station is (package udp).
//
// Around a link that hands out what was sent, as memory does, one whose frames have a checksum of
// their headers alone would not find what Corrupt does: package mcd has those that send there cover
// all. A program that uses such a link without mcd looks for itself.
//
// The zero Config does nothing. Send and Poll do not allocate, once the queue's memory has grown.
package fault
