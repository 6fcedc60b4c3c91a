//go:build linux

package hostile

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/rawlane/rawlane/internal/crc32c"
	"github.com/rawlane/rawlane/transport"
)

// Offsets of docs/wire-format.md: this package does not use the code that it tests.
const (
	headerLen     = 20
	authHeaderLen = 48
	clusterAt     = 8
	lengthAt      = 12
	checksumAt    = 16
	incarnationAt = 16
)

// kind is a way in which a frame is wrong.
type kind int

const (
	forged    kind = iota // one bit of a recorded frame is another
	replayed              // as recorded
	truncated             // cut off anywhere
	oversized             // says more than it brings, up to a whole MTU of it
	foreign               // of another key, or without keys of another cluster
	otherVID              // as recorded, under a tag
	spoofed               // of an incarnation that never was; without keys from another address
	kinds
)

// valid reports whether a receiver without keys has to take such a frame for a message.
func (k kind) valid() bool { return k == replayed || k == otherVID }

// station makes hostile frames of recorded ones.
type station struct {
	rng      *rand.Rand
	keys     bool
	own      transport.MAC     // its own address
	mtu      int               // what a frame may have at most
	recorded []transport.Frame // from node 0 to node 1
	foreign  []transport.Frame // the same way, sealed by another key
}

// frame makes a frame of a kind.
func (s *station) frame(k kind) transport.Frame {
	f := s.recorded[s.rng.IntN(len(s.recorded))]
	if k == foreign && s.keys {
		return s.foreign[s.rng.IntN(len(s.foreign))]
	}
	f.Payload = slices.Clone(f.Payload)
	b := f.Payload
	switch k {
	case forged:
		b[s.rng.IntN(len(b))] ^= 1 << s.rng.IntN(8)
	case truncated:
		f.Payload = b[:s.rng.IntN(len(b))]
	case oversized:
		said := len(b) + s.rng.IntN(1<<16-len(b))
		f.Payload = slices.Grow(b, s.mtu-len(b))[:len(b)+s.rng.IntN(min(said, s.mtu)-len(b)+1)]
		s.setLength(f.Payload, said)
	case foreign:
		b[clusterAt] ^= 0x80
		seal(b)
	case otherVID:
		f.OptionalTag = transport.Tagged(transport.Tag{VID: transport.VID(2 + s.rng.IntN(4000))})
	case spoofed:
		if !s.keys {
			f.Src = s.own
			break
		}
		binary.BigEndian.PutUint64(b[incarnationAt:], s.rng.Uint64())
	}
	return f
}

// setLength has a header say that more bytes follow than do.
func (s *station) setLength(b []byte, said int) {
	header := headerLen
	if s.keys {
		header = authHeaderLen
	}
	binary.BigEndian.PutUint16(b[lengthAt:], uint16(max(said, len(b)+1)-header))
}

// seal computes the checksum of a frame of version 1.
func seal(b []byte) {
	sum := crc32c.Update(crc32c.Update(0, b[:checksumAt]), b[headerLen:])
	binary.BigEndian.PutUint32(b[checksumAt:], sum)
}
