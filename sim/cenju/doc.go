// Package cenju has the transfer model of Cenju-3, a parallel computer of 1993: what limits a
// remote write whose receiver keeps its cache coherent by software.
//
//	sender --packets--> network --> FIFO --> receiver --> memory
//	                    36 MB/s    1.5 KB    48 MB/s        |  last packet: interrupt
//	                                                        v
//	                                         processor: 9 us, then invalidation at 200 MB/s
//
// The sender cuts a transfer into packets of about 512 bytes. Only the last one interrupts the
// receiver's processor, which then invalidates the transfer's cache lines. Where the receiver
// stands still meanwhile ([NotPipelined]), the network goes on until the FIFO is full, and the
// receiver, which is faster, catches up afterwards. So a FIFO hides an invalidation that takes no
// longer than the network takes to fill it, and throughput has a peak where the two are equal.
//
// [Config.Simulate] moves packet by packet; [Config.Formula] is the same in closed form, and the
// two check each other. No protocol runs here, and no event queue: the instants of a packet follow
// from those of the packets before it.
//
// Not modelled: other traffic, the switches between, the sender's own cache and system calls, the
// message that asks for an invalidation. They are in the latency ([HardwareLatency],
// [UserLatency]), which is the paper's measurement, added up, and no simulation.
//
// Source: CENJU §3 (sender, receiver, flags), §5 (latency), §6 (throughput). docs/papers/cenju.md
// has the results beside the paper's.
package cenju
