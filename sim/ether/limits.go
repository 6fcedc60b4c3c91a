package ether

import (
	"time"

	"github.com/rawlane/rawlane/vlan/topology"
)

const (
	// DefaultQueue is how many bytes may wait at a switch port, with the frame that is being sent.
	// The paper does not say; gigabit switches of its time have about a megabyte for all ports.
	DefaultQueue = 128 << 10

	// hostQueue is the same for a host, whose kernel queues 1000 frames (Linux, txqueuelen).
	hostQueue = 1000 * FullFrame

	// DefaultWindow is the most payload that a flow has in flight, in bytes: the socket buffers
	// that Open MPI 1.2 asks for.
	DefaultWindow = 128 << 10

	// MaxQueue bounds Config.Queue: at MinRate, the time that it takes still fits an instant.
	MaxQueue = 64 << 20
	// MaxWindow bounds Config.Window, and with it the memory of a flow, in bytes.
	MaxWindow = 64 << 20

	// MinRate is the lowest rate of a cable.
	MinRate = topology.Mbps
	// MaxRate is the highest. A byte's time is then 8,000 femtoseconds, fine enough for clocks that
	// are off by ppm.
	MaxRate = 1000 * topology.Gbps

	// MaxTime is how long a network's time may run: a line counts in femtoseconds.
	MaxTime = time.Hour
)

// What passes between a program and its cable, and inside a switch. With a switch between them,
// two programs are about 30 us apart, as VFREC §5.1 has it for TCP over Gigabit Ethernet.
const (
	DefaultHostLatency   = 12 * time.Microsecond
	DefaultSwitchLatency = 2 * time.Microsecond

	// maxLatency bounds both: with more, retransmission timers run out on an idle network.
	maxLatency = 50 * time.Millisecond

	// jitter is the largest delay of a host's processor, and clockPPM the largest error of a port's
	// clock (IEEE 802.3 §40.6.1.2.6). Without them frames of two senders would meet in the same
	// order every time, and those of one sender find the queue full every time (Floyd and Jacobson,
	// "On traffic phase effects", 1992).
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

// Of the transport, as Linux of the paper's time has it.
const (
	minRTO        = 200 * time.Millisecond
	maxRTO        = 120 * time.Second
	ackDelay      = 40 * time.Millisecond
	initialWindow = 3 // segments
	ackEvery      = 2 // segments
)
