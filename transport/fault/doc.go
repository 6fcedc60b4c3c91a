// Package fault makes a link lossy: it loses, duplicates, reorders, delays, corrupts and truncates received frames, by
// chance from a seed, and cuts the cable.
//
//	rng := rand.New(rand.NewPCG(seed, 0))
//	link, err = fault.New(link, rng, fault.Config{Loss: 0.01, Delay: 0.1, DelayMax: time.Millisecond})
//
// The faults happen where frames are received: wrap the link of each node that shall suffer. They are drawn in the
// order in which Poll takes frames from the link inside, so that the same seed and the same frames give the same faults. Each is
// counted. Frames that are held back, to be delayed or reordered, end a Wait when they are due.
//
//	                 lost?  cut?      truncated?  corrupted?       delayed, reordered?
//	link inside ---> frame ---------> copy, if it is changed ----> held until due ----> Poll
//	                                             duplicated? ----> one now, one as above
//
// The zero Config does nothing, and costs nothing.
package fault
