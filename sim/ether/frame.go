package ether

import (
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// frame is what is on its way. It is copied from queue to queue: no frame is allocated.
type frame struct {
	dst, src transport.MAC
	vid      transport.VID
	payload  uint16 // bytes
	flow     int32
	ack      bool // otherwise data
	push     bool // data: to be acknowledged at once
	// seq is the segment's number. In an ack it is the next one that the receiver lacks, and [lo,
	// hi) is a run of later ones that it has.
	seq, lo, hi uint64
	sent        monotime.Time // in an ack: of the segment that it answers
}

// wireBytes is how long a cable is busy with the frame, in bytes.
func (f *frame) wireBytes() int64 {
	return frameHead + headers + int64(f.payload) + frameEnd // never so short that it is padded
}
