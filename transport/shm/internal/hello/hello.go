// Package hello is what two links tell each other when they meet: one packet each way over a Unix
// socket, with the descriptors of the memory and of the eventfd that go with it.
//
//	 0  magic and version
//	 8  the sender's MAC
//	14  0
//	16  its MTU
//	20  data bytes of the ring that it writes
//	24  the bit of its bell that tells of the other's ring
//	28  0
//
// The descriptors are, in this order: the memory of the ring that the sender writes, the memory of
// its bell, and the eventfd that wakes it.
package hello

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// Len is the length of a hello, in bytes.
const Len = 32

// Descriptors is how many descriptors go with one.
const Descriptors = 3

const magic = "rwlnshm\x01"

// ErrMalformed: the packet is no hello.
var ErrMalformed = errors.New("not the hello of a rawlane link of this version")

// Hello is what a link says of itself.
type Hello struct {
	MAC  transport.MAC
	MTU  int
	Data int // of the ring that the link writes, in bytes
	Bit  int // of the link's bell
}

// AppendTo appends h's bytes to b.
func (h *Hello) AppendTo(b []byte) []byte {
	b = append(append(append(b, magic...), h.MAC[:]...), 0, 0)
	for _, v := range []int{h.MTU, h.Data, h.Bit, 0} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// Parse reads a hello. Errors: ErrMalformed; a number that cannot be.
func Parse(b []byte) (Hello, error) {
	if len(b) != Len || string(b[:len(magic)]) != magic {
		return Hello{}, ErrMalformed
	}
	h := Hello{
		MAC:  transport.MAC(b[8:14]),
		MTU:  int(binary.LittleEndian.Uint32(b[16:])),
		Data: int(binary.LittleEndian.Uint32(b[20:])),
		Bit:  int(binary.LittleEndian.Uint32(b[24:])),
	}
	switch {
	case binary.BigEndian.Uint16(b[14:]) != 0 || binary.LittleEndian.Uint32(b[28:]) != 0:
		return Hello{}, ErrMalformed
	case h.MAC.IsMulticast() || h.MAC.IsZero():
		return Hello{}, fmt.Errorf("%w: MAC %v", ErrMalformed, h.MAC)
	case !records.Valid(h.Data, h.MTU):
		return Hello{}, fmt.Errorf("%w: a ring of %d bytes for an MTU of %d", ErrMalformed, h.Data, h.MTU)
	case h.Bit < 0 || h.Bit >= records.Rings:
		return Hello{}, fmt.Errorf("%w: bit %d", ErrMalformed, h.Bit)
	}
	return h, nil
}
