// Package prefetch asks the processor for memory that is about to be read.
//
// A frame that was received lies in another core's cache: its kernel has written it. To fetch one
// of 1,500 bytes takes 50 to 100 ns, more than all else that is done with it, and as long again if
// that core is far away. So whoever goes through a batch of frames asks for the next one before it
// reads this one. Measured on a processor of AMD's, both ways at once: the checksums of full frames
// take 3 % instead of 4 % of all time, and 4 % instead of 8 % where the system has placed the two
// ends far apart.
package prefetch
