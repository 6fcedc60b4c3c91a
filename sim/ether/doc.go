// Package ether runs an Ethernet of switches and cables in virtual time, frame by frame: cables
// have rates, ports have queues that fill up, switches learn addresses and flood what they do not
// know, and hosts send streams of bytes as TCP does.
//
// The switches are package l2switch's, the very ones of the in-memory fabric; nothing here
// decides where a frame goes. A [topology.Topology] says what is cabled to what and which link
// carries which VID; a [plan.Plan], or [Network.SetVID] at any time, with which VID a host sends
// to another.
//
//	 Flow     Flow               one window and one timer each
//	   |        |
//	  host 0   host 1            tag: by destination
//	   |        |                o--- line: rate, queue, latency; one event per frame
//	+--o--------o---+
//	|    switch     |            learns (VID, source), looks up (VID, destination): one port, or flood
//	+--o--------o---+
//	   |        |                full queue: the frame is dropped
//	 switch   switch
//
// Switches store and forward. A port whose queue is full drops what comes; it does not send PAUSE
// frames. So do switches unless they are told otherwise, and for a reason: a frame that floods
// would stop every cable that leads to a busy port.
//
// A [Flow] is once and in order, whatever is lost: a window in segments, slow start and
// congestion avoidance, selective acknowledgements, fast retransmission, a timer of 200 ms and
// more; an ack of 74 bytes for every second segment. That is Linux of 2007, the hosts of the
// paper, less what does not matter between hosts that are one building apart.
//
// Guaranteed: frames are accounted for ([Counters]); the same configuration, seed and calls give
// the same run, on every machine. Not modelled: processors that are too slow, PCI, checksums that
// fail, frames without a tag, switches whose ports share one memory.
//
// Cost: about 65 ns a hop, of which a frame to another leaf switch takes four; nothing is
// allocated once the most frames that wait at once have (go test ./sim/ether -run - -bench . -cpu
// 1).
//
// Source: VFREC §4.3 and §5.
package ether
