package ether

import "time"

const (
	// DefaultQueue is how many bytes may wait at a switch's port, the frame that is leaving among them. Switches of the
	// paper's time share 1 to 2 MB among 12 to 24 ports.
	DefaultQueue = 128 << 10

	// DefaultWindow is the most payload that a flow has on its way, in bytes: the socket buffers that Open MPI asks for.
	DefaultWindow = 128 << 10

	// maxWindow and maxQueue bound a run's memory.
	maxWindow = 64 << 20
	maxQueue  = 1 << 30
)

// What passes between a frame and the program, and inside a switch. With a switch between them, two programs are about
// 30 us apart, as VFREC §5.1 has it for TCP over Gigabit Ethernet.
const (
	DefaultHostLatency   = 12 * time.Microsecond
	DefaultSwitchLatency = 2 * time.Microsecond

	// jitter is the most that a host's processor is late, and clockPPM the most that a port's clock is off
	// (IEEE 802.3 §35.5): without them frames of two senders would meet in the same order at each turn, for ever, and one
	// find the queue full, always.
	jitter   = 5 * time.Microsecond
	clockPPM = 100
)

// Sizes, in bytes.
const (
	MTU        = 1500
	headers    = 52                                 // of IPv4, 20, and TCP with timestamps, 32
	Payload    = MTU - headers                      // of a full frame
	frameHead  = 18                                 // addresses, tag, EtherType
	minFrame   = 64 - frameCheck                    // a shorter one is padded
	frameCheck = 4                                  // FCS
	gap        = 8 + 12                             // preamble and the silence behind a frame
	FullFrame  = MTU + frameHead + frameCheck + gap // what a full frame takes of a cable's time
)

// Of the transport: what Linux of the paper's time does.
const (
	minRTO        = 200 * time.Millisecond
	maxRTO        = 120 * time.Second
	delayedAck    = 40 * time.Millisecond
	initialWindow = 3 // segments
	dupThreshold  = 3 // segments that overtake one before it is taken for lost
	ackEvery      = 2 // segments
)

// MaxTime is how long a network's time may run: a line counts in femtoseconds.
const MaxTime = 2 * time.Hour
