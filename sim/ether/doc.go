// Package ether simulates an Ethernet of switches and cables in virtual time, frame by frame:
// cables have rates, ports have queues that fill up, switches learn addresses and flood unknown
// ones, and hosts send streams of bytes as TCP does.
//
// The switches are those of package l2switch, as in the in-memory fabric; nothing here decides
// where a frame goes. A [topology.Topology] says what is cabled to what and which link carries
// which VID. A [plan.Plan], or [Network.SetVID] at any time, sets the VID with which a host sends
// to another.
//
//	 Flow     Flow               one window and one timer each
//	   |        |
//	  host 0   host 1            tag: by destination
//	   |        |                o--- line: rate, queue, latency; one event for each frame
//	+--o--------o---+
//	|    switch     |            learns (VID, source), forwards by (VID, destination), or floods
//	+--o--------o---+
//	   |        |                full queue: the frame is dropped
//	 switch   switch
//
// Switches store and forward. A port with a full queue drops frames and sends no PAUSE frames. That
// is the default of switches, for a reason: a flooded frame would stop every cable that leads to a
// busy port.
//
// A [Flow] delivers bytes once and in order, whatever is lost: congestion control in segments
// (internal/congestion), selective acknowledgements, fast retransmission, a retransmission timer of
// 200 ms and more, and an ack of 74 bytes for every second segment. Congestion control is
// NewReno's, or CUBIC's ([Config].Congestion), which the paper's hosts had unless their default was
// changed: Linux 2.6.20. Of that TCP there are no handshakes, no slow start after a pause, no
// restored window where a retransmission was needless, no slow receiver.
//
// Guaranteed: frames are accounted for ([Counters]); the same configuration, seed and calls give
// the same run, on every machine. Not modelled: slow processors, PCI, failing checksums, untagged
// frames, switches whose ports share one memory.
//
// Cost: about 65 ns a hop; a frame to another leaf switch has four. Nothing is allocated once the
// queues have grown (go test ./sim/ether -run - -bench . -cpu 1).
//
// Source: VFREC §4.3 and §5.
package ether
