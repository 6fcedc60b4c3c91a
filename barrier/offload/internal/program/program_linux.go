package program

import (
	"errors"
	"fmt"
	"hash/crc32"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/internal/room"
)

// maxMembers bounds the members of all slots together: those of 64 numbers of groups with 1024.
const maxMembers = 64 * slot.MaxRanks

// Program is the program, attached to an interface or not yet, and its maps.
type Program struct {
	objects  offloadObjects
	attached link.Link
	memory   []byte // the slots
	slots    []slot.Slot
}

// Load loads the program with so many slots.
func Load(slots int) (p *Program, err error) {
	if err := room.HaveDescriptors(); err != nil {
		return nil, err
	}
	spec, err := loadOffload()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables["crc32c"].Set([256]uint32(*crc32.MakeTable(crc32.Castagnoli))); err != nil {
		return nil, fmt.Errorf("set the table: %w", err)
	}
	spec.Maps["slots"].MaxEntries = uint32(slots)
	spec.Maps["members"].MaxEntries = maxMembers
	p = new(Program)
	if err := spec.LoadAndAssign(&p.objects, nil); err != nil {
		return nil, err
	}
	page := unix.Getpagesize()
	size := (slots*int(unsafe.Sizeof(slot.Slot{})) + page - 1) / page * page
	p.memory, err = unix.Mmap(p.objects.Slots.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the slots: %w", err), p.objects.Close())
	}
	p.slots = unsafe.Slice((*slot.Slot)(unsafe.Pointer(unsafe.SliceData(p.memory))), slots)
	return p, nil
}

// Slot returns the i-th slot, in memory that is there until Unmap.
func (p *Program) Slot(i int) *slot.Slot { return &p.slots[i] }

// AddMember adds a member: ebpf.ErrKeyExist, if there is one of that key.
func (p *Program) AddMember(k slot.Key, m slot.Member) error {
	return p.objects.Members.Update(&k, &m, ebpf.UpdateNoExist)
}

// RemoveMember removes a member.
func (p *Program) RemoveMember(k slot.Key) error { return p.objects.Members.Delete(&k) }

// Attach runs the program on an interface: in its driver, or in the kernel's generic code, behind
// the driver. The kernel detaches it when the program is closed or the process ends.
func (p *Program) Attach(index int, native bool) (err error) {
	how := link.XDPGenericMode
	if native {
		how = link.XDPDriverMode
	}
	p.attached, err = link.AttachXDP(link.XDPOptions{Program: p.objects.RawlaneBarrier, Interface: index, Flags: how})
	return err
}

// Run runs the program on a frame, as if it came to the loopback, and returns what becomes of it.
func (p *Program) Run(frame []byte) (v slot.Verdict, out []byte, err error) {
	o := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+64)}
	verdict, err := p.objects.RawlaneBarrier.Run(&o)
	return slot.Verdict(verdict), o.DataOut, err
}

// Close detaches the program and unloads it. The memory of its slots stays.
func (p *Program) Close() error {
	var errs []error
	if p.attached != nil {
		errs = append(errs, p.attached.Close())
	}
	return errors.Join(append(errs, p.objects.Close())...)
}

// Unmap gives the memory of the slots back.
func (p *Program) Unmap() error {
	p.slots = nil
	return unix.Munmap(p.memory)
}
