package transport

import "context"

// Link is one attachment to an Ethernet segment.
//
// Send, Wait, Counters and Close may be called from any goroutine at any time. Only one goroutine
// may poll a link at a time.
type Link interface {
	// MAC returns the link's own address.
	MAC() MAC

	// MTU returns the largest payload, in bytes, that Send takes: what follows the EtherType.
	// A VLAN tag does not count against it.
	MTU() int

	// Send hands frames to the wire in order and returns how many it took. The frames and their
	// payloads are the caller's again when it returns. If n < len(frames), err says why frame n was
	// not taken: ErrBusy (no room now: try the rest later), *SizeError (over the MTU), ErrBadTag,
	// ErrClosed, or an error of the system. A frame that was taken may still be lost on its way.
	Send(frames []Frame) (n int, err error)

	// Poll moves received frames into frames, without waiting, and returns how many. Payloads are
	// views of the link's memory, valid until the next Poll or Close. n may be 0 with a nil error.
	// The link's own frames, and unicast frames for other stations, are never among them.
	Poll(frames []Frame) (n int, err error)

	// Wait blocks until Poll has something to return, or ctx ends (its error), or the link is
	// closed (ErrClosed). It may return early, with nothing there.
	Wait(ctx context.Context) error

	// Counters returns what passed since the link was opened.
	Counters() Counters

	// Close ends the link and undoes what it changed on the system. Calls in progress and later
	// ones return ErrClosed. Further calls of Close do nothing.
	Close() error
}

// Counters of a link. Bytes are Frame.WireLen, of frames as they were sent and received.
type Counters struct {
	TxFrames  uint64 `json:"tx_frames"`
	TxBytes   uint64 `json:"tx_bytes"`
	TxRefused uint64 `json:"tx_refused"` // not sent: over the MTU, bad tag, or refused by the system
	TxBusy    uint64 `json:"tx_busy"`    // times that Send returned ErrBusy
	// TxFragmented counts those that left in several packets, as the path takes less than the MTU.
	TxFragmented uint64 `json:"tx_fragmented,omitempty"`

	RxFrames    uint64 `json:"rx_frames"` // handed out by Poll
	RxBytes     uint64 `json:"rx_bytes"`
	RxDropped   uint64 `json:"rx_dropped"`   // arrived, and lost because there was no room for them
	RxMalformed uint64 `json:"rx_malformed"` // arrived, and too short or cut off to be a frame
}

// CheckFrame reports whether a link with the given MTU can send f: nil, *SizeError or ErrBadTag.
func CheckFrame(f *Frame, mtu int) error {
	if len(f.Payload) > mtu {
		return &SizeError{Size: len(f.Payload), Max: mtu}
	}
	if f.Tagged && (f.Tag.VID > MaxVID || f.Tag.PCP > 7) {
		return f.Tag.Validate()
	}
	return nil
}
