package afpacket

import (
	"fmt"
	"math"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// RingLayout is how a receive ring's memory is cut into slots.
type RingLayout struct {
	SlotSize int // bytes, a power of two
	Slots    int // a power of two
}

// slotHeader is the most that the kernel puts before a frame in a slot, in bytes: its header, an
// address, alignment.
const slotHeader = 128

// blockSize is what the kernel allocates at once, in bytes. A slot does not straddle two blocks.
const blockSize = 1 << 16

// NewRingLayout returns the layout for frames of the MTU, with at least the slots asked for; 0 is
// the default.
func NewRingLayout(mtu, slots int) RingLayout {
	size := 1 << bits.Len(uint(slotHeader+mtu+transport.MaxHeaderLen-1))
	if slots == 0 {
		slots = min(DefaultSlots, defaultMemory/size)
	}
	count := 1 << bits.Len(uint(slots-1))
	return RingLayout{SlotSize: size, Slots: max(count, max(blockSize, size)/size)}
}

// Bytes returns the size of the ring's memory.
func (r RingLayout) Bytes() int { return r.SlotSize * r.Slots }

// SetUp makes the kernel write what the socket receives to a ring.
func (r RingLayout) SetUp(fd int) error { return r.setUp(fd, unix.PACKET_RX_RING) }

// SetUpSending makes the socket send from a ring.
func (r RingLayout) SetUpSending(fd int) error { return r.setUp(fd, unix.PACKET_TX_RING) }

func (r RingLayout) setUp(fd, option int) error {
	if r.Slots > math.MaxInt/r.SlotSize {
		return fmt.Errorf("%d slots of %d bytes are more than this program can address (ask for fewer)",
			r.Slots, r.SlotSize)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return err
	}
	block := min(max(blockSize, r.SlotSize), r.Bytes())
	return unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, option, &unix.TpacketReq{
		Block_size: uint32(block),
		Block_nr:   uint32(r.Bytes() / block),
		Frame_size: uint32(r.SlotSize),
		Frame_nr:   uint32(r.Slots),
	})
}
