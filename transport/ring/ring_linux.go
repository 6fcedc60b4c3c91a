package ring

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// ring is the memory that the kernel writes received frames to. A slot begins with a Tpacket2Hdr, whose status
// says whose it is: the kernel's, or ours until we give it back.
type ring struct {
	memory   []byte
	slotSize int
	mask     uint32 // number of slots - 1
	head     uint32 // the next slot to look at
	held     uint32 // slots before head that are handed out
}

// slotHeader is what the kernel puts before a frame in a slot at most, in bytes: its header, an address, alignment.
const slotHeader = 128

// blockSize is what the kernel allocates at once; a slot does not straddle two.
const blockSize = 1 << 16

func (r *ring) open(fd, mtu, slots int) error {
	r.slotSize = 1 << bits.Len(uint(slotHeader+mtu+transport.MaxHeaderLen-1))
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
	r.memory, err = unix.Mmap(fd, 0, count*r.slotSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

func (r *ring) close() {
	if r.memory != nil {
		_ = unix.Munmap(r.memory) // it is a mapping of ours
		r.memory = nil
	}
}

// slot returns the header of a slot, and the slot's memory.
func (r *ring) slot(i uint32) (*unix.Tpacket2Hdr, []byte) {
	at := int(i&r.mask) * r.slotSize
	memory := r.memory[at : at+r.slotSize : at+r.slotSize]
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&memory[0])), memory
}

// next takes the next slot if the kernel has filled it. It is ours until release.
func (r *ring) next() (h *unix.Tpacket2Hdr, memory []byte, ok bool) {
	h, memory = r.slot(r.head)
	if atomic.LoadUint32(&h.Status)&unix.TP_STATUS_USER == 0 {
		return nil, nil, false
	}
	r.head++
	r.held++
	return h, memory, true
}

// release gives all slots that were taken back to the kernel.
func (r *ring) release() {
	for first := r.head - r.held; r.held > 0; r.held-- {
		h, _ := r.slot(first)
		atomic.StoreUint32(&h.Status, unix.TP_STATUS_KERNEL)
		first++
	}
}

// parse reads the frame in a slot. ok is false if it was cut off, or is no frame at all.
func parse(h *unix.Tpacket2Hdr, memory []byte, f *transport.Frame) (tpid transport.EtherType, ok bool) {
	begin, end := int(h.Mac), int(h.Mac)+int(h.Snaplen)
	if h.Snaplen < h.Len || h.Snaplen < transport.HeaderLen || end > len(memory) {
		return 0, false
	}
	b := memory[begin:end:end]
	f.Dst = transport.MAC(b[0:6])
	f.Src = transport.MAC(b[6:12])
	f.EtherType = transport.EtherType(b[12])<<8 | transport.EtherType(b[13])
	f.Payload = b[transport.HeaderLen:]
	f.Tagged = h.Status&unix.TP_STATUS_VLAN_VALID != 0 // not the tag's value: a tag of zeros is a tag
	f.Tag = transport.Tag{}
	if !f.Tagged {
		return 0, true
	}
	f.Tag = transport.TagFromTCI(h.Vlan_tci)
	if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		return transport.EtherType(h.Vlan_tpid), true
	}
	return transport.EtherTypeVLAN, true
}
