package transport

import "context"

// Link is one attachment to an Ethernet segment.
//
// Send, Wait, Counters and Close may be called from any goroutine at any time. Only one goroutine may
// poll a link at a time.
type Link interface {
	// MAC returns the link's own address.
	MAC() MAC

	// MTU returns the largest payload, in bytes, that Send takes: what follows the EtherType.
	// A VLAN tag does not count against it.
	MTU() int

	// Send hands frames to the wire in order, and returns how many it took. The frames and their
	// payloads are the caller's again when it returns. If n < len(frames), err says why frame n was not
	// taken: ErrBusy (no room now: try the rest later), *SizeError (over the MTU), ErrBadTag, ErrClosed,
	// or what the system said. That a frame was taken does not mean that it will arrive.
	Send(frames []Frame) (n int, err error)

	// Poll moves received frames into frames, without waiting, and returns how many.
	// Payloads are views of the link's memory, valid until the next Poll or Close.
	// n may be 0 with a nil error. The link's own frames are never among them, nor are unicast frames
	// for others.
	Poll(frames []Frame) (n int, err error)

	// Wait blocks until Poll has something to return, or ctx ends (its error), or the link is closed
	// (ErrClosed). It may return early, with nothing there.
	Wait(ctx context.Context) error

	// Counters returns what passed since the link was opened.
	Counters() Counters

	// Close ends the link, undoes what it changed on the system, and makes calls in progress and later
	// ones return ErrClosed. Further calls of Close do nothing.
	Close() error
}

// Counters of a link. Bytes are Frame.WireLen, of frames as they were sent and received.
type Counters struct {
	TxFrames  uint64 `json:"tx_frames"`
	TxBytes   uint64 `json:"tx_bytes"`
	TxRefused uint64 `json:"tx_refused"` // not sent: over the MTU, bad tag, or refused by the system
	TxBusy    uint64 `json:"tx_busy"`    // times that Send returned ErrBusy

	RxFrames    uint64 `json:"rx_frames"` // handed out by Poll
	RxBytes     uint64 `json:"rx_bytes"`
	RxDropped   uint64 `json:"rx_dropped"`   // arrived, and lost because there was no room for them
	RxMalformed uint64 `json:"rx_malformed"` // arrived, and too short or cut off to be a frame
}

// Joiner is a link that filters group addresses: it hands out only frames for groups it joined.
// Joins are counted: a group is left when Leave was called as often as Join.
type Joiner interface {
	Join(group MAC) error
	Leave(group MAC) error
}

// WakeupMasker is a link whose sleeping waiter can be left asleep while somebody else polls.
//
// After MaskWakeups(true) arriving frames do not end a Wait, in progress or to come: so a goroutine that polls
// the link in a loop does not have another woken by each frame. MaskWakeups(false) undoes it, and ends a Wait
// if there is something to poll.
type WakeupMasker interface{ MaskWakeups(on bool) }

// Namer is a link that has a name on this system, such as its network interface's.
// Links of the same name in one network namespace reach the same segment.
type Namer interface{ Name() string }

// Wrapper is a link around another one. Abilities that the wrapper does not have itself are looked for
// in the link it returns.
type Wrapper interface{ Unwrap() Link }

// As finds the ability T (Joiner, WakeupMasker, Namer or one of your own) in l or in the links it wraps.
func As[T any](l Link) (ability T, ok bool) {
	for l != nil {
		if ability, ok = l.(T); ok {
			return ability, true
		}
		w, wraps := l.(Wrapper)
		if !wraps {
			break
		}
		l = w.Unwrap()
	}
	return ability, false
}

// Join makes l receive frames for the group. It does nothing for a link that receives all groups.
func Join(l Link, group MAC) error {
	if j, ok := As[Joiner](l); ok {
		return j.Join(group)
	}
	return nil
}

// Leave undoes Join.
func Leave(l Link, group MAC) error {
	if j, ok := As[Joiner](l); ok {
		return j.Leave(group)
	}
	return nil
}

// Name returns the link's name, or its address if it has none.
func Name(l Link) string {
	if n, ok := As[Namer](l); ok {
		return n.Name()
	}
	return l.MAC().String()
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

// Sharer is a link to a device that other processes may open too. Segment names the attachment, the same
// for each process that shares it; who needs something to itself, such as a port, locks it by that name.
type Sharer interface{ Segment() string }
