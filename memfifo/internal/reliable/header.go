package reliable

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Version of the frames' layout.
const Version = 2

// Kind is what a frame is for.
type Kind uint8

// The kinds.
const (
	Data     Kind = iota + 1 // records of a lane, and an acknowledgement
	Ack                      // an acknowledgement alone
	Hello                    // a challenge
	HelloAck                 // the response, and possibly a challenge
	Bye                      // the sender's incarnation ends
	ByeAck                   // the receiver of a bye has heard it
	kinds
)

// String names k.
func (k Kind) String() string {
	return [...]string{"?", "data", "ack", "hello", "hello-ack", "bye", "bye-ack", "?"}[min(k, kinds)]
}

// Header is the first bytes of each frame.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 flags: 1 lane of the data, 2 lane of the acknowledgement, 4 acknowledge at once
//	 2 credit: how many frames from Ack on the sender of this accepts, 2 bytes
//	 4 incarnation of the sender, 4 bytes; not 0
//	 8 incarnation of the receiver, as the sender knows it, 4 bytes; 0 in a Hello
//	12 Data: sequence number in its lane, 4 bytes. Hello, HelloAck: a challenge, or 0. Ack: the
//	   number of a probe (with flag 4), or of the probe that it answers, or 0
//	16 Ack: the next frame expected, 4 bytes. HelloAck: the response, which is the challenge
//	20 in an Ack: SACK, 0 to 4 words of 8 bytes, as many as it takes; see SACK
//	20 in Data: records
//
// Integers are big-endian. Data carries no SACK: an Ack goes out at once for each gap, and the
// bytes count for more in each frame.
type Header struct {
	Kind     Kind
	Lane     uint8
	AckLane  uint8
	AckNow   bool
	Credit   uint16
	Src, Dst uint32 // incarnations
	Sequence uint32
	Ack      uint32
	SACK     SACK
}

// HeaderLen is the length of a header, in bytes, and maxAckLen that of the longest Ack.
const (
	HeaderLen = 20
	maxAckLen = HeaderLen + 8*sackWords
)

const (
	sackWords = Window / wordBits
	wordBits  = 64
)

// SACK says which frames have arrived behind the next one expected: bit i%64 of word i/64 stands
// for frame Ack+i. It covers the whole window. Words behind the last bit are not on the wire, so
// an Ack with nothing out of order has none.
//
// Source: RFC 2018, with bits in place of blocks.
type SACK [sackWords]uint64

func (s *SACK) add(i uint32) { s[i/wordBits] |= 1 << (i % wordBits) }

// Len returns how many frames it says have arrived.
func (s *SACK) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// words returns how many words are on the wire.
func (s *SACK) words() int {
	n := len(s)
	for n > 0 && s[n-1] == 0 {
		n--
	}
	return n
}

const (
	flagLane    = 1
	flagAckLane = 2
	flagAckNow  = 4
)

// ErrMalformed: not a frame of this version.
var ErrMalformed = errors.New("malformed frame")

// put writes h to the front of b, and returns its length.
func (h *Header) put(b []byte) int {
	flags := h.Lane*flagLane | h.AckLane*flagAckLane
	if h.AckNow {
		flags |= flagAckNow
	}
	b[0], b[1] = Version<<4|byte(h.Kind), flags
	binary.BigEndian.PutUint16(b[2:], h.Credit)
	binary.BigEndian.PutUint32(b[4:], h.Src)
	binary.BigEndian.PutUint32(b[8:], h.Dst)
	binary.BigEndian.PutUint32(b[12:], h.Sequence)
	binary.BigEndian.PutUint32(b[16:], h.Ack)
	n := HeaderLen
	if h.Kind == Ack {
		for _, word := range h.SACK[:h.SACK.words()] {
			binary.BigEndian.PutUint64(b[n:], word)
			n += 8
		}
	}
	return n
}

// renumber turns the header in b into that of another data frame with the same acknowledgement.
func renumber(b []byte, sequence uint32, ackNow bool) {
	b[1] &^= flagAckNow
	if ackNow {
		b[1] |= flagAckNow
	}
	binary.BigEndian.PutUint32(b[12:], sequence)
}

// Parse reads the header of a frame. The records follow it, at HeaderLen.
func Parse(b []byte, h *Header) error {
	if len(b) < HeaderLen || b[0]>>4 != Version {
		return ErrMalformed
	}
	h.Kind = Kind(b[0] & 0xf)
	h.Lane = b[1] & flagLane
	h.AckLane = b[1] & flagAckLane >> 1
	h.AckNow = b[1]&flagAckNow != 0
	h.Credit = binary.BigEndian.Uint16(b[2:])
	h.Src = binary.BigEndian.Uint32(b[4:])
	h.Dst = binary.BigEndian.Uint32(b[8:])
	h.Sequence = binary.BigEndian.Uint32(b[12:])
	h.Ack = binary.BigEndian.Uint32(b[16:])
	h.SACK = SACK{}
	if h.Kind == Ack {
		words := b[HeaderLen:]
		if len(words)%8 != 0 || len(words) > 8*sackWords {
			return ErrMalformed
		}
		for i := range len(words) / 8 {
			h.SACK[i] = binary.BigEndian.Uint64(words[8*i:])
		}
		if h.SACK.words() != len(words)/8 {
			return ErrMalformed
		}
	}
	if h.Kind == 0 || h.Kind >= kinds || h.Src == 0 || b[1]>>3 != 0 {
		return ErrMalformed
	}
	return nil
}
