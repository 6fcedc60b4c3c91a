package ether

import (
	"time"

	"github.com/rawlane/rawlane/vlan/topology"
)

const (
	// DefaultQueue is how many bytes may wait at a switch's port, the frame that is leaving among
	// them. The paper does not say; gigabit switches of its time have in the order of a megabyte
	// for all ports.
	DefaultQueue = 128 << 10

	// hostQueue is the same for a host, whose kernel queues 1000 frames (Linux, txqueuelen).
	hostQueue = 1000 * FullFrame

	// DefaultWindow is the most payload that a flow has on its way, in bytes: the socket buffers
	// that Open MPI 1.2 asks for.
	DefaultWindow = 128 << 10

	// MaxQueue bounds Config.Queue: at MinRate, the time that it takes still fits an instant.
	MaxQueue = 64 << 20
	// MaxWindow bounds Config.Window, and with it the memory of a flow, in bytes.
	MaxWindow = 64 << 20

	// MinRate is the least that a cable may have.
	MinRate = topology.Mbps
	// MaxRate is the most: a byte's time is then 8,000 grains of a line's time, fine enough for
	// clocks that are off.
	MaxRate = 1000 * topology.Gbps

	// MaxTime is how long a network's time may run: a line counts in femtoseconds.
	MaxTime = time.Hour
)

// What passes between a program and its cable, and inside a switch. With a switch between them,
// two programs are about 30 us apart, as VFREC §5.1 has it for TCP over Gigabit Ethernet.
const (
	DefaultHostLatency   = 12 * time.Microsecond
	DefaultSwitchLatency = 2 * time.Microsecond

	// maxLatency bounds both: beyond it the transport's own patience ends.
	maxLatency = 50 * time.Millisecond

	// jitter is the most that a host's processor is late, and clockPPM the most that a port's
	// clock is off (IEEE 802.3 §40.6.1.2.6). Without them frames of two senders would meet in the
	// same order for ever, and those of one of them find the queue full each time (Floyd and
	// Jacobson, "On traffic phase effects", 1992).
	jitter   = 5 * time.Microsecond
	clockPPM = 100
)

// Sizes, in bytes.
const (
	// MTU is what follows a full frame's EtherType.
	MTU = 1500
	// Payload is what a full frame carries of a program's bytes.
	Payload = MTU - headers
	headers = 20 + 32 // of IPv4, and of TCP with timestamps

	// FullFrame is what a full frame takes of a cable's time.
	FullFrame = MTU + frameHead + frameEnd

	frameHead = 18         // addresses, tag, EtherType
	frameEnd  = 4 + 8 + 12 // FCS, and the preamble and silence that go with each
)

// Of the transport: what Linux of the paper's time does.
const (
	minRTO        = 200 * time.Millisecond
	maxRTO        = 120 * time.Second
	delayedAck    = 40 * time.Millisecond
	initialWindow = 3 // segments
	ackEvery      = 2 // segments
)
