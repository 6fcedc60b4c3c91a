package ring

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// ring is the memory to which the kernel writes received frames. A slot begins with a Tpacket2Hdr,
// whose status says whose the slot is: the kernel's, or ours until we give it back.
type ring struct {
	memory   []byte
	slotSize int
	mask     uint32 // number of slots - 1
	head     uint32 // the next slot to look at
	taken    uint32 // slots before head that are ours
}

// slot is one slot of the ring, with a frame in it.
type slot struct {
	header *unix.Tpacket2Hdr
	memory []byte
}

// slotHeader is the most that the kernel puts before a frame in a slot, in bytes: its header, an
// address, alignment.
const slotHeader = 128

// blockSize is what the kernel allocates at once, in bytes. A slot does not straddle two blocks.
const blockSize = 1 << 16

// slotSizeFor returns how much memory a slot takes for frames of an MTU: a power of two.
func slotSizeFor(mtu int) int { return 1 << bits.Len(uint(slotHeader+mtu+transport.MaxHeaderLen-1)) }

// defaultSlots returns how many slots a ring has by default: DefaultSlots, or fewer where these
// would take more than defaultMemory.
func defaultSlots(mtu int) int { return min(DefaultSlots, defaultMemory/slotSizeFor(mtu)) }

func (r *ring) open(fd, mtu, slots int) error {
	r.slotSize = slotSizeFor(mtu)
	count := 1 << bits.Len(uint(slots-1))
	block := max(blockSize, r.slotSize)
	count = max(count, block/r.slotSize)
	r.mask = uint32(count - 1)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return err
	}
	err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq{
		Block_size: uint32(block),
		Block_nr:   uint32(count * r.slotSize / block),
		Frame_size: uint32(r.slotSize),
		Frame_nr:   uint32(count),
	})
	if err != nil {
		return err
	}
	r.memory, err = mapRing(fd, count*r.slotSize)
	return err
}

func (r *ring) close() {
	if r.memory != nil {
		retire(r.memory)
		r.memory = nil
	}
}

// slots returns how many slots the ring has.
func (r *ring) slots() int { return int(r.mask) + 1 }

func (r *ring) slot(i uint32) slot {
	at := int(i&r.mask) * r.slotSize
	memory := r.memory[at : at+r.slotSize : at+r.slotSize]
	return slot{(*unix.Tpacket2Hdr)(unsafe.Pointer(&memory[0])), memory}
}

// next takes the next slot if the kernel has filled it. It is ours until release. The caller takes
// at most slots() of them before it releases: one more would be the first again.
func (r *ring) next() (s slot, ok bool) {
	s = r.slot(r.head)
	if atomic.LoadUint32(&s.header.Status)&unix.TP_STATUS_USER == 0 {
		return slot{}, false
	}
	r.head++
	r.taken++
	return s, true
}

// release gives all slots that were taken back to the kernel.
func (r *ring) release() {
	for first := r.head - r.taken; r.taken > 0; r.taken-- {
		atomic.StoreUint32(&r.slot(first).header.Status, unix.TP_STATUS_KERNEL)
		first++
	}
}

// received returns the frame in the slot, a view of it.
func (s slot) received() afpacket.Received {
	h := s.header
	begin := min(int(h.Mac), len(s.memory))
	end := min(begin+int(h.Snaplen), len(s.memory))
	return afpacket.Received{Bytes: s.memory[begin:end:end], Len: int(h.Len), Status: h.Status, TCI: h.Vlan_tci}
}

// tpid returns the EtherType of the frame's tag, or 0 if it has none.
func (s slot) tpid() transport.EtherType {
	switch status := s.header.Status; {
	case status&unix.TP_STATUS_VLAN_VALID == 0:
		return 0
	case status&unix.TP_STATUS_VLAN_TPID_VALID != 0:
		return transport.EtherType(s.header.Vlan_tpid)
	}
	return transport.EtherTypeVLAN
}
