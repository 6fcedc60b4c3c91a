// Package prefetch asks the processor for memory that is about to be read.
//
// A received frame lies in another core's cache, as the kernel wrote it there. Fetching one of
// 1,500 bytes takes 50 to 100 ns, more than all other work on it, and twice that if the core is far
// away. A loop over a batch of frames therefore asks for the next frame before it reads this one.
// Measured on an AMD processor, both ways at once: the checksums of full frames take 3 % instead of
// 4 % of all time, and 4 % instead of 8 % where the two ends run on cores far apart.
package prefetch
