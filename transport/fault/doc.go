// Package fault makes a link lossy: it loses, duplicates, reorders, delays, corrupts and truncates received frames, by
// chance from a seed, and cuts the cable.
//
//	rng := rand.New(rand.NewPCG(seed, 0))
//	link, err = fault.New(link, rng, fault.Config{Loss: 0.01, Delay: 0.1, DelayMax: time.Millisecond})
//
// Faults happen where frames are received: wrap the link of each node that shall suffer. Chance is drawn in the
// order in which Poll takes frames from the link inside, so that the same seed and the same frames give the same
// faults. Each is counted.
//
//	link inside --> cut? lost? --> duplicated? --> truncated? corrupted? --> delayed? reordered? --> Poll
//	                                  |                                            |
//	                                  +-- one as it was, at the end of the batch   +-- held back until due
//
// Frames that are held back end a Wait when they are due; those that are not keep their order. A test under
// testing/synctest has its delays in virtual time. Altered frames are copies: what others see of the frame, such as a
// broadcast's other receivers or a capture inside, stays whole.
//
// The zero Config does nothing. Send and Poll allocate nothing, with faults once their memory has grown.
package fault
