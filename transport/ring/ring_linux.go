package ring

import (
	"sync/atomic"
	"time"
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

// open maps the ring's memory, and sets it up first unless that is done.
func (r *ring) open(fd int, layout afpacket.RingLayout, isSetUp bool) (err error) {
	if !isSetUp {
		if err := layout.SetUp(fd); err != nil {
			return err
		}
	}
	r.slotSize, r.mask = layout.SlotSize, uint32(layout.Slots-1)
	r.memory, err = mapRing(fd, layout.Bytes())
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

// filled reports whether the kernel has filled the next slot.
func (r *ring) filled() bool {
	return atomic.LoadUint32(&r.slot(r.head).header.Status)&unix.TP_STATUS_USER != 0
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

// release gives the slots that were taken back to the kernel, but for the last ones.
func (r *ring) release(but uint32) {
	for first := r.head - r.taken; r.taken > but; r.taken-- {
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

// beforeFrame returns the last n bytes before the frame.
func (s slot) beforeFrame(n int) []byte {
	begin := min(max(int(s.header.Mac), n), len(s.memory))
	return s.memory[begin-n : begin]
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

// stamp returns the frame's, if it has one: without, the kernel writes when it filled the slot.
func (s slot) stamp() (stamp transport.Stamp) {
	if s.header.Status&unix.TP_STATUS_TS_SOFTWARE != 0 {
		stamp.Software = time.Unix(int64(s.header.Sec), int64(s.header.Nsec))
	}
	return stamp
}
