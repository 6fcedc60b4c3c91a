package mcd

import (
	"time"

	"github.com/rawlane/rawlane/sim/internal/csmacd"
)

// Model is hosts and the networks between them.
type Model struct {
	// Send is the processor's time for a send: o_s of the LogP model (MCD §5.1.1).
	Send time.Duration
	// Interrupt is the processor's time for an interrupt, to which Receive for each message and
	// Sent for each frame that was sent are added. A message alone takes o_r, 9.5 us, and a frame
	// that was sent 6 us (MCD §5.1.1); how much of them is the interrupt is fitted.
	Interrupt, Receive, Sent time.Duration
	// Step is the processor's time for the barrier's own code, whenever a rank has what it awaits.
	// Fitted.
	Step time.Duration
	// Loop is the time between two barriers (MCD §4.3, figure 4).
	Loop time.Duration
	// DMA is the time of a frame from a host's memory to its NIC, and from a NIC to memory: what is
	// left of L, 17.5 us, by the frame on two cables (MCD §5.1.1).
	DMA time.Duration
	// FrameBytes is how much of the wire's time a message takes, with preamble and gap. Fitted; the
	// shortest frame has 84.
	FrameBytes int

	// Distance is how long a bit takes from host to host through the hub: a station that begins
	// within it does not hear the other one. Assumed: a hub of class II, some metres of cable.
	Distance time.Duration
}

// Fitted returns the model of the paper's cluster.
func Fitted() Model {
	return Model{
		Send:      3 * time.Microsecond,
		Interrupt: 3800 * time.Nanosecond, Receive: 5700 * time.Nanosecond, Sent: 2200 * time.Nanosecond,
		Step: 5500 * time.Nanosecond, Loop: 30 * time.Microsecond,
		DMA: 990 * time.Nanosecond, FrameBytes: 97,
		Distance: 600 * time.Nanosecond,
	}
}

// wire returns how long a message is on a cable, or on the hub.
func (m *Model) wire() time.Duration { return time.Duration(m.FrameBytes) * csmacd.ByteTime }
