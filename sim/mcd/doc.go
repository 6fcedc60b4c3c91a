// Package mcd has the barrier experiments of MCD with its cluster of 32 hosts, as a model in
// virtual time: figures 5 to 8 with a switch and with a repeater hub, 9 and 10 with two switches.
//
//	host ---cable--- switch ---cable--- host   store and forward; both ways at once
//	host ------------- hub ------------ host   one frame at a time: CSMA/CD
//
//	processor   |send|      |interrupt|receive|  |step|send|
//	NIC              |DMA|wire ...  ^ arrives
//
// A host has one processor. Each message that arrives interrupts it, and each frame that was sent:
// the program waits meanwhile. What its NIC has more to tell before the interrupt's end is handled
// in the same one, for less; the other NIC's waits for an interrupt of its own (MCD §5.2). On the
// hub stations back off as IEEE 802.3 has it. Ranks run the schedules of package barrier/schedule,
// as in figure 4: a barrier, 30 us of work, 100 times.
//
// o_s, o_r, L and the gap are the paper's (§5.1.1). [Fitted] adds three parameters that were chosen
// so that results with switches come near to the paper's nine; nothing was fitted to the four with
// the hub. docs/papers/mcd.md has the output, and what follows from it.
//
// Source: MCD §4.3, §4.4, §5.
package mcd
