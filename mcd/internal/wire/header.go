// Package wire turns rawlane's frame header into bytes and back. docs/wire-format.md is its
// specification, with golden vectors; this package is the only code that knows the offsets.
package wire

import (
	"encoding/binary"

	"github.com/rawlane/rawlane/internal/crc32c"
)

// Version is the version of the header that this package writes and the only one it reads.
const Version = 1

// HeaderLen is the header's length in bytes. The payload follows it.
const HeaderLen = 20

// Kind is the kind of a message. It says what Header.To means.
type Kind uint8

// The kinds. Zero is none of them, so that a frame of zeros is no message.
const (
	Unicast   Kind = 1 // To is a node
	Multicast Kind = 2 // To is a group
	Broadcast Kind = 3 // To is AllNodes
	Probe     Kind = 4 // To is the node to reply; ProbeHead begins the payload
	Reply     Kind = 5 // To is the node that probed; likewise
)

// AllNodes stands in Header.To of a broadcast.
const AllNodes uint16 = 0xffff

// Flags of a frame without keys.
const (
	// FlagTagged says that the sender put a VLAN tag on the frame, and that TCI is what it carried.
	FlagTagged = 0x01
	// FlagHeaderOnly says that the checksum covers the header alone.
	FlagHeaderOnly = 0x02
)

// Header is what stands before the payload. The payload's length and the checksum are computed by
// Put.
type Header struct {
	Kind       Kind
	Tagged     bool
	HeaderOnly bool // the checksum covers the header alone
	DstPort    uint8
	SrcPort    uint8
	From       uint16 // the sending node
	To         uint16 // node, group or AllNodes, by Kind
	Cluster    uint32
	TCI        uint16 // the tag as sent, if Tagged: it outlives switches and NICs that strip tags
	Payload    []byte // by Parse: a view, without padding
	checksum   uint32
}

// Fault says what is wrong with received bytes.
type Fault uint8

// The faults, in the order in which Parse looks for them.
const (
	OK          Fault = iota
	TooShort          // fewer bytes than a header
	BadVersion        // another version's frame, or not ours at all
	BadLength         // the payload's length is more than what arrived
	BadChecksum       // what the checksum covers changed on the way
	BadKind           // a kind this version does not know
)

var faultNames = [...]string{"ok", "short", "version", "length", "checksum", "kind"}

// String names f as in the counters: drop_short, drop_version and so on.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return "unknown"
}

// Put writes h and then payload to b, which must hold HeaderLen+len(payload) bytes, and returns
// that length. The payload must be shorter than 64 KiB. h.Payload is not used.
func Put(b []byte, h *Header, payload []byte) int {
	n := HeaderLen + copy(b[HeaderLen:HeaderLen+len(payload)], payload)
	Seal(b[:n], h)
	return n
}

// Seal writes h before the payload that is in b already, behind HeaderLen bytes.
func Seal(b []byte, h *Header) {
	h.put(b, Version, len(b)-HeaderLen)
	if h.HeaderOnly {
		b[1] |= FlagHeaderOnly
	}
	binary.BigEndian.PutUint32(b[16:], h.sum(b))
}

// put writes the 16 bytes that all versions begin with, before a payload of n bytes.
func (h *Header) put(b []byte, version byte, n int) {
	b[0] = version<<4 | byte(h.Kind)&0x0f
	b[1] = 0
	tci := uint16(0)
	if h.Tagged {
		b[1] = FlagTagged
		tci = h.TCI
	}
	b[2] = h.DstPort
	b[3] = h.SrcPort
	binary.BigEndian.PutUint16(b[4:], h.From)
	binary.BigEndian.PutUint16(b[6:], h.To)
	binary.BigEndian.PutUint32(b[8:], h.Cluster)
	binary.BigEndian.PutUint16(b[12:], uint16(n))
	binary.BigEndian.PutUint16(b[14:], tci)
}

// get reads them but for version and kind, and returns the payload's length.
func (h *Header) get(b []byte) (n int) {
	h.Tagged = b[1]&FlagTagged != 0
	h.DstPort = b[2]
	h.SrcPort = b[3]
	h.From = binary.BigEndian.Uint16(b[4:])
	h.To = binary.BigEndian.Uint16(b[6:])
	h.Cluster = binary.BigEndian.Uint32(b[8:])
	h.TCI = binary.BigEndian.Uint16(b[14:])
	return int(binary.BigEndian.Uint16(b[12:]))
}

// Parse reads a frame's payload: our header, our payload, perhaps padding. It fills h and returns
// OK, or the first fault; then h holds what could be read, for reports. h.Payload is a view of b.
func Parse(b []byte, h *Header) Fault {
	if len(b) < HeaderLen {
		return TooShort
	}
	h.Kind = Kind(b[0] & 0x0f)
	if b[0]>>4 != Version {
		return BadVersion
	}
	n := HeaderLen + h.get(b)
	h.HeaderOnly = b[1]&FlagHeaderOnly != 0
	h.checksum = binary.BigEndian.Uint32(b[16:])
	if n > len(b) {
		h.Payload = b[HeaderLen:]
		return BadLength
	}
	h.Payload = b[HeaderLen:n]
	if h.sum(b[:n]) != h.checksum {
		return BadChecksum
	}
	if h.Kind < Unicast || h.Kind > Reply {
		return BadKind
	}
	return OK
}

// ClusterOf returns the cluster of a frame of either version. ok is false if b is no such frame. It
// lets a receiver drop other clusters' frames before their checksums are computed.
func ClusterOf(b []byte) (cluster uint32, ok bool) {
	if len(b) < HeaderLen || b[0]>>4 != Version && b[0]>>4 != AuthVersion {
		return 0, false
	}
	return binary.BigEndian.Uint32(b[8:]), true
}

// VersionOf returns the version in b, which must not be empty.
func VersionOf(b []byte) int { return int(b[0] >> 4) }

// LengthOf returns the payload's length in b, which must hold a header.
func LengthOf(b []byte) int { return int(binary.BigEndian.Uint16(b[12:])) }

// Checksum returns the checksum that the last Parse read.
func (h *Header) Checksum() uint32 { return h.checksum }

// sum is CRC-32C over the header without its checksum field and, unless HeaderOnly, the payload.
func (h *Header) sum(b []byte) uint32 {
	sum := crc32c.Update(0, b[:16])
	if !h.HeaderOnly {
		sum = crc32c.Update(sum, b[HeaderLen:])
	}
	return sum
}
