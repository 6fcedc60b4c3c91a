package mbcf

import (
	"time"

	"github.com/rawlane/rawlane/sim/internal/csmacd"
)

// What the standard says of 100BASE-TX, and the paper of frames.
const (
	byteTime = csmacd.ByteTime

	// ethernetBytes are those of a frame that are no payload: header, FCS, preamble, gap.
	ethernetBytes = 38
	// minFrame is the shortest frame with these.
	minFrame = 46 + ethernetBytes
	// frameData is what a frame carries of a message (MBCF §2.1: the size with the peak bandwidth).
	frameData = 1408
)

// Layer is what messages are sent through: MBCF, or MPI over it.
type Layer struct {
	// Header is the bytes of a frame that are no data, Ethernet's left out. Derived: of the peak
	// bandwidths, which therefore test nothing (Experiment.Inputs).
	Header int

	// Host is the time of a message in both hosts, from the call to its frame, and from the last
	// frame to the program. HostEmpty is that of a message without data. Fitted.
	Host, HostEmpty time.Duration
	// PerByte is the time in which a host makes a byte of a frame. The next frame is made while the
	// last one is on the wire. Fitted.
	PerByte time.Duration

	// Gap is the time from the end of a message on the wire to the first bit of the next one. The
	// bytes of a message behind the first GapBytes take GapPerByte each off it. Fitted.
	Gap        time.Duration
	GapBytes   int
	GapPerByte time.Duration
}

// Model is two hosts and what is between them.
type Model struct {
	MBCF, MPI Layer

	// AckDelay is from a frame's last bit to an acknowledgement that is ready for the wire. One
	// that waits for the wire covers all frames that have come. Fitted, and narrowly: with half or
	// twice of it table 2 is missed by a quarter.
	AckDelay time.Duration
	// Window is how many frames are sent before one of them is acknowledged. Chosen: table 2 does
	// not tell 3 from 16, and the 11.48 MB/s of MBCF itself do not tell 2 from 6.
	Window int

	// Distance is how long a bit takes from host to host through the hub: a station that begins
	// within it does not hear the other one. Assumed: a hub of class II, some metres of cable.
	Distance time.Duration
}

// Fitted returns the model of the paper's workstations.
func Fitted() Model {
	return Model{
		MBCF: Layer{Header: 29, Host: 11 * time.Microsecond, PerByte: 9 * time.Nanosecond},
		MPI: Layer{
			Header: 38,
			Host:   28750 * time.Nanosecond, HostEmpty: 22 * time.Microsecond, PerByte: 9 * time.Nanosecond,
			Gap: 22 * time.Microsecond, GapBytes: 256, GapPerByte: 13 * time.Nanosecond,
		},
		AckDelay: 12 * time.Microsecond, Window: 4,
		Distance: 600 * time.Nanosecond,
	}
}

// ack is how long an acknowledgement is on the wire: a frame of the least size.
const ack = minFrame * byteTime

// wire returns how long a frame with so much data is on the wire.
func (l *Layer) wire(data int) time.Duration {
	return time.Duration(max(minFrame, data+l.Header+ethernetBytes)) * byteTime
}

// frames returns how many frames a message is; one without data is a frame as well.
func frames(bytes int) int { return max(1, (bytes+frameData-1)/frameData) }

// dataOf returns how much of a message frame number i carries.
func dataOf(bytes, i int) int { return min(bytes-i*frameData, frameData) }

// gap returns the time between a message and the next one on the wire.
func (l *Layer) gap(bytes int) time.Duration {
	return max(0, l.Gap-time.Duration(max(0, bytes-l.GapBytes))*l.GapPerByte)
}

// Latency returns how long a message takes from a program to the other one, through the switch:
// assumed, as the paper does not say where it measured latency.
func (m *Model) Latency(l *Layer, bytes int) time.Duration {
	var made, sent, arrived time.Duration
	for i := range frames(bytes) {
		data := dataOf(bytes, i)
		made += time.Duration(data) * l.PerByte
		sent = max(made, sent) + l.wire(data)
		arrived = max(sent, arrived) + l.wire(data) // the switch has all of it before it sends
	}
	if bytes == 0 {
		return l.HostEmpty + arrived
	}
	return l.Host + arrived
}

// RoundTrip returns how long a message and its answer take.
func (m *Model) RoundTrip(bytes int) time.Duration { return 2 * m.Latency(&m.MPI, bytes) }
