package transport

import (
	"encoding/binary"
	"fmt"
)

// EtherType says what a frame's payload is.
type EtherType uint16

const (
	// EtherTypeDefault is rawlane's: IEEE 802 local experimental 1.
	EtherTypeDefault EtherType = 0x88b5
	// EtherTypeVLAN marks an 802.1Q tag.
	EtherTypeVLAN EtherType = 0x8100
	// EtherTypeQinQ marks an 802.1ad service tag.
	EtherTypeQinQ EtherType = 0x88a8
	// EtherTypeAny, where a link is opened, asks for frames of every type. IEEE reserves the value.
	EtherTypeAny EtherType = 0xffff
)

// String formats e as 0x88b5.
func (e EtherType) String() string { return fmt.Sprintf("%#04x", uint16(e)) }

// Sizes of a frame's parts, in bytes.
const (
	HeaderLen    = 14 // destination, source, EtherType
	TagLen       = 4  // TPID and TCI
	MinFrameLen  = 60 // shortest frame on a wire, without FCS; shorter ones are padded with zeros
	MaxHeaderLen = HeaderLen + TagLen
)

// Frame is one Ethernet frame, its 802.1Q tag apart from its payload.
type Frame struct {
	Dst MAC
	// Src is the sender. In Send the zero MAC stands for the link's own address.
	Src       MAC
	EtherType EtherType // of the payload, behind the tag
	OptionalTag
	// Origin, in a received frame, is a Roamer's note of where it came from. It is 0 in most. Who
	// copies a frame keeps it: so the copy can be named in Answers, or be called Authentic. Send
	// does not look at it.
	Origin uint32
	// Payload is what follows the EtherType. In a received frame it may be longer than what was
	// sent: frames shorter than MinFrameLen are padded on a wire.
	Payload []byte
	// Headroom, in Send, is memory just before Payload in the same array, which the link may
	// overwrite. If the frame's header fits, a link to the kernel puts it there and need not copy
	// the payload. It may be nil; if it is not just before Payload it is not used. Received frames
	// have none.
	Headroom []byte
	// Answers, in Send, is the received frame that this one answers, or a copy of it: a Roamer
	// sends it to where that came from, if it came lately. Only the polling goroutine may send such
	// a frame. It is nil in most frames, and in received ones.
	Answers *Frame
}

// WireLen returns the frame's length in bytes, from destination to the end of the payload. It
// counts the tag, but neither FCS nor preamble nor padding.
func (f *Frame) WireLen() int { return f.HeaderLen() + len(f.Payload) }

// HeaderLen returns the length of the frame's header, with its tag if it has one.
func (f *Frame) HeaderLen() int {
	if f.Tagged {
		return MaxHeaderLen
	}
	return HeaderLen
}

// PutHeader writes the frame's header, with its tag if it has one, to the start of b, which must
// have room for it, and returns its length: 14 or 18 bytes.
func (f *Frame) PutHeader(b []byte) int {
	_ = b[HeaderLen-1]
	copy(b[0:6], f.Dst[:])
	copy(b[6:12], f.Src[:])
	if !f.Tagged {
		binary.BigEndian.PutUint16(b[12:], uint16(f.EtherType))
		return HeaderLen
	}
	_ = b[MaxHeaderLen-1]
	binary.BigEndian.PutUint16(b[12:], uint16(EtherTypeVLAN))
	binary.BigEndian.PutUint16(b[14:], f.Tag.TCI())
	binary.BigEndian.PutUint16(b[16:], uint16(f.EtherType))
	return MaxHeaderLen
}

// PutHeaderInPlace writes the frame's header to the end of its Headroom and returns the frame's
// bytes: header and payload. If there is no such room before the payload, ok is false and nothing
// was written.
func (f *Frame) PutHeaderInPlace() (b []byte, ok bool) {
	n, size := len(f.Headroom), len(f.Payload)
	header := f.HeaderLen()
	if n < header || size == 0 || cap(f.Headroom) < n+size {
		return nil, false
	}
	b = f.Headroom[:n+size]
	if &b[n] != &f.Payload[0] {
		return nil, false
	}
	b = b[n-header:]
	f.PutHeader(b)
	return b, true
}

// AppendTo appends the frame's bytes as they are on a wire (without padding and FCS) to b.
func (f *Frame) AppendTo(b []byte) []byte {
	var h [MaxHeaderLen]byte
	b = append(b, h[:f.PutHeader(h[:])]...)
	return append(b, f.Payload...)
}

// ParseFrame reads the bytes of a frame, without FCS. It takes one 802.1Q tag off; Payload is a
// view of b. The only error is ErrShortFrame.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < HeaderLen {
		return Frame{}, ErrShortFrame
	}
	f := Frame{
		Dst:       MAC(b[0:6]),
		Src:       MAC(b[6:12]),
		EtherType: EtherType(binary.BigEndian.Uint16(b[12:])),
		Payload:   b[HeaderLen:],
	}
	if f.EtherType != EtherTypeVLAN {
		return f, nil
	}
	if len(b) < MaxHeaderLen {
		return Frame{}, ErrShortFrame
	}
	f.OptionalTag = Tagged(TagFromTCI(binary.BigEndian.Uint16(b[14:])))
	f.EtherType = EtherType(binary.BigEndian.Uint16(b[16:]))
	f.Payload = b[MaxHeaderLen:]
	return f, nil
}
