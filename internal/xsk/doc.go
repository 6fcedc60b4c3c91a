// Package xsk is AF_XDP's sockets: memory for frames that a program shares with the kernel, and the
// four rings in which they pass frames to each other.
//
//	           fill        frames to receive into    -->
//	program    rx          received frames           <--    kernel
//	           tx          frames to send            -->
//	           completion  frames that were sent     <--
//
// A frame is a chunk of the memory (UMEM), by its offset there. At any time it belongs to one side:
// what is in the fill or tx ring to the kernel, what came out of rx or completion to the program.
// Of each ring one side writes the entries and the producer index, and the other the consumer
// index.
//
// Source: the kernel's Documentation/networking/af_xdp.rst.
package xsk
