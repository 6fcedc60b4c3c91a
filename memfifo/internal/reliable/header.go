package reliable

import (
	"encoding/binary"
	"errors"
)

// Version of the frames' layout.
const Version = 1

// Kind is what a frame is for.
type Kind uint8

// The kinds.
const (
	Data     Kind = iota + 1 // records of a lane, and an acknowledgement
	Ack                      // an acknowledgement alone
	Hello                    // a question: what is your life?
	HelloAck                 // the answer, and perhaps a question
	Bye                      // the sender's life is over
	kinds
)

// String names k.
func (k Kind) String() string {
	return [...]string{"?", "data", "ack", "hello", "hello-ack", "bye", "?"}[min(k, kinds)]
}

// Header is what each frame begins with.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 flags: 1 lane of the data, 2 lane of the acknowledgement, 4 answer at once
//	 2 credit: how many frames from Ack on the receiver takes, 2 bytes
//	 4 the sender's life, 4 bytes: another one each time that it begins anew with this peer
//	 8 the receiver's, as the sender knows it, 4 bytes; 0 in a Hello
//	12 number of this frame in its lane, 4 bytes; 0 without data. In a Hello or Welcome: of a question, or 0
//	16 Ack: the next frame that is wanted, 4 bytes. In a Welcome: the question that it answers
//	20 in an Ack: which of Ack and the 63 frames after it are here, 8 bytes, the first in the lowest bit
//	20 in Data: records
//
// Integers are big-endian. Data leaves out what is here behind a gap, for which there is an Ack at once: gaps are rare, and 8 bytes
// of every frame are not.
type Header struct {
	Kind     Kind
	Lane     uint8
	AckLane  uint8
	AckNow   bool
	Credit   uint16
	Src, Dst uint32
	Sequence uint32
	Ack      uint32
	SACK     uint64
}

// HeaderLen is the length of a header, in bytes, and ackLen that of an Ack's.
const (
	HeaderLen = 20
	ackLen    = HeaderLen + 8
)

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
	if h.Kind != Ack {
		return HeaderLen
	}
	binary.BigEndian.PutUint64(b[HeaderLen:], h.SACK)
	return ackLen
}

// renumber makes the header in b that of another data frame, which is like it.
func renumber(b []byte, sequence uint32, answerNow bool) {
	b[1] &^= flagAckNow
	if answerNow {
		b[1] |= flagAckNow
	}
	binary.BigEndian.PutUint32(b[12:], sequence)
}

// Parse reads the header of a frame. The records are what follows.
func Parse(b []byte, h *Header) error {
	if len(b) < HeaderLen || b[0]>>4 != Version {
		return ErrMalformed
	}
	_ = b[HeaderLen-1]
	h.Kind = Kind(b[0] & 0xf)
	h.Lane = b[1] & flagLane
	h.AckLane = b[1] & flagAckLane >> 1
	h.AckNow = b[1]&flagAckNow != 0
	h.Credit = binary.BigEndian.Uint16(b[2:])
	h.Src = binary.BigEndian.Uint32(b[4:])
	h.Dst = binary.BigEndian.Uint32(b[8:])
	h.Sequence = binary.BigEndian.Uint32(b[12:])
	h.Ack = binary.BigEndian.Uint32(b[16:])
	h.SACK = 0
	if h.Kind == Ack {
		if len(b) < ackLen {
			return ErrMalformed
		}
		h.SACK = binary.BigEndian.Uint64(b[HeaderLen:])
	}
	if h.Kind == 0 || h.Kind >= kinds || h.Src == 0 || b[1]>>3 != 0 {
		return ErrMalformed
	}
	return nil
}
