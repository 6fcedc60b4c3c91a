package ether

import (
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// frame is a frame in flight. It is copied from queue to queue: none is allocated.
type frame struct {
	dst, src transport.MAC
	vid      transport.VID
	payload  uint16 // bytes
	flow     int32
	ack      bool // otherwise data
	push     bool // data: to be acknowledged at once
	// seq is the segment number. In an ack, seq is the next segment expected, and [lo, hi) is a
	// SACK block.
	seq, lo, hi uint64
	sentAt      monotime.Time // in an ack: the echoed timestamp of the segment (RFC 7323 §3)
}

// wireBytes is how long a cable is busy with the frame, in bytes.
func (f *frame) wireBytes() int64 {
	return frameHead + headers + int64(f.payload) + frameEnd // never so short that it is padded
}
