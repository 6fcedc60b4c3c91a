package xsk

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// headroom is what the kernel keeps free before each received frame, for XDP programs
// (XDP_PACKET_HEADROOM).
const headroom = 256

// minChunk is the smallest chunk that the kernel takes. The largest is a page.
const minChunk = 2048

// A NIC that writes frames itself may count the memory for one in steps, and write the frame's
// check sequence, too: igb and igc have SRRCTL.BSIZEPKT, in kilobytes. What is longer they cut.
const (
	nicStep       = 1 << 10
	checkSequence = 4
)

// ChunkFor returns the size of chunks that hold frames of so many bytes, and false if none does:
// those that the kernel copies, or those that a NIC writes.
func ChunkFor(frame int, zeroCopy bool) (size int, ok bool) {
	if zeroCopy {
		frame = (frame + checkSequence + nicStep - 1) / nicStep * nicStep
	}
	size = max(minChunk, 1<<bits.Len(uint(headroom+frame-1)))
	return size, size <= os.Getpagesize()
}

// MaxFrame is the longest frame that a chunk holds, in bytes.
func MaxFrame(zeroCopy bool) int {
	most := os.Getpagesize() - headroom
	if zeroCopy {
		most = most/nicStep*nicStep - checkSequence
	}
	return most
}

// SendFrames is how many frames may be under way to the NIC: what large transmit rings hold.
const SendFrames = 512

// Config of a socket.
type Config struct {
	Chunk   int  // bytes, as ChunkFor returns it
	Receive int  // frames that the socket can receive into: a power of two
	Send    int  // likewise, frames to send; 0: the socket does not send
	Shared  bool // the memory for frames is a file, which another process can map
}

// ConfigOf is the Config of a link's socket for a receive queue. The first one sends.
func ConfigOf(queue, chunk, slots int) Config {
	cfg := Config{Chunk: chunk, Receive: slots}
	if queue == 0 {
		cfg.Send = SendFrames
	}
	return cfg
}

// MemoryBytes is how much memory the frames take.
func (c *Config) MemoryBytes() int { return (c.Receive + c.Send) * c.Chunk }

// Socket is an AF_XDP socket with its memory and rings. Its methods are for one goroutine at a
// time, but those of the rings: Fill and Received for one, Transmit and Completed for another.
type Socket struct {
	FD       int
	MemoryFD int // the file of the memory for frames, if that is shared; else -1

	Fill      Producer[uint64]
	Received  Consumer[Desc]
	Transmit  Producer[Desc]
	Completed Consumer[uint64]

	memory []byte
	cfg    Config
	maps   [][]byte // the rings' memory
}

// Open makes a socket whose frames to receive into are with the kernel. It receives and sends
// nothing before it is bound.
func Open(cfg Config) (_ *Socket, err error) {
	s := &Socket{cfg: cfg, MemoryFD: -1}
	s.FD, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	if err = s.allocate(); err == nil {
		err = s.register()
	}
	if err == nil {
		err = s.makeRings()
	}
	if err == nil {
		err = s.mapRings()
	}
	if err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	for k := range cfg.Receive {
		s.Fill.Put(uint64(k * cfg.Chunk))
	}
	s.Fill.Submit()
	return s, nil
}

// Adopt is the socket of another process that has opened it with such a Config, shared, and bound
// it. Both descriptors are the socket's from now on.
func Adopt(cfg Config, fd, memory int) (_ *Socket, err error) {
	s := &Socket{cfg: cfg, FD: fd, MemoryFD: memory}
	s.memory, err = mapMemory(memory, cfg.MemoryBytes())
	if err == nil {
		err = s.mapRings()
	}
	if err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	s.Fill.next = atomic.LoadUint32(s.Fill.producer) // full: Open has filled it
	return s, nil
}

// Adoptable returns the error that Adopt of this socket has in another process. Before Linux 6.4
// that is EBUSY: nobody maps the rings of a socket that is bound.
func (s *Socket) Adoptable() error {
	again := &Socket{cfg: s.cfg, FD: s.FD}
	errs := []error{again.mapRings()}
	for _, m := range again.maps {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	return errors.Join(errs...)
}

// register gives the kernel the memory for frames.
func (s *Socket) register() error {
	at := uintptr(unsafe.Pointer(&s.memory[0]))
	r := unix.XDPUmemReg{Addr: uint64(at), Len: uint64(len(s.memory)), Size: uint32(s.cfg.Chunk)}
	if err := s.set(unix.XDP_UMEM_REG, unsafe.Pointer(&r), unsafe.Sizeof(r)); err != nil {
		return fmt.Errorf("register %d bytes for frames: %w", len(s.memory), err)
	}
	return nil
}

// ringSpec is one of a socket's rings.
type ringSpec struct {
	option, entries int
	page            int64
	size            int // of an entry
}

// rings returns what the rings are like: fill, completion, rx and tx. The completion ring has room
// for all frames to send, so that it never holds one up; the fill ring likewise.
func (c *Config) rings() [4]ringSpec {
	const minRing = 2
	const address, desc = int(unsafe.Sizeof(uint64(0))), int(unsafe.Sizeof(Desc{}))
	return [4]ringSpec{
		{unix.XDP_UMEM_FILL_RING, c.Receive, unix.XDP_UMEM_PGOFF_FILL_RING, address},
		{unix.XDP_UMEM_COMPLETION_RING, max(minRing, c.Send), unix.XDP_UMEM_PGOFF_COMPLETION_RING, address},
		{unix.XDP_RX_RING, c.Receive, unix.XDP_PGOFF_RX_RING, desc},
		{unix.XDP_TX_RING, c.Send, unix.XDP_PGOFF_TX_RING, desc},
	}
}

// Bytes is how much of the system's memory a socket takes: its frames and its rings.
func (c *Config) Bytes() int {
	page := os.Getpagesize()
	n := c.MemoryBytes()
	for _, r := range c.rings() {
		n += (r.entries*r.size + 2*page - 1) / page * page // with the indices
	}
	return n
}

// makeRings makes the rings.
func (s *Socket) makeRings() error {
	for _, r := range s.cfg.rings() {
		if r.entries == 0 {
			continue
		}
		if err := unix.SetsockoptInt(s.FD, unix.SOL_XDP, r.option, r.entries); err != nil {
			return fmt.Errorf("make a ring of %d: %w", r.entries, err)
		}
	}
	return nil
}

// mapRings maps the rings.
func (s *Socket) mapRings() error {
	var at unix.XDPMmapOffsets
	if err := s.get(unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&at), unsafe.Sizeof(at)); err != nil {
		return fmt.Errorf("ask for the rings' layout: %w", err)
	}
	layouts := []offsets{layout(at.Fr), layout(at.Cr), layout(at.Rx), layout(at.Tx)}
	rings := s.cfg.rings()
	for k, r := range rings {
		if r.entries == 0 {
			s.maps = append(s.maps, nil)
			continue
		}
		memory, err := unix.Mmap(s.FD, r.page, int(layouts[k].desc)+r.entries*r.size,
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return fmt.Errorf("map a ring of %d: %w", r.entries, err)
		}
		s.maps = append(s.maps, memory)
	}
	s.Fill = Producer[uint64]{newRing[uint64](s.maps[0], layouts[0], rings[0].entries)}
	s.Completed = Consumer[uint64]{newRing[uint64](s.maps[1], layouts[1], rings[1].entries)}
	s.Received = Consumer[Desc]{newRing[Desc](s.maps[2], layouts[2], rings[2].entries)}
	if s.cfg.Send > 0 {
		s.Transmit = Producer[Desc]{newRing[Desc](s.maps[3], layouts[3], rings[3].entries)}
	}
	return nil
}

func layout(o unix.XDPRingOffset) offsets {
	return offsets{producer: o.Producer, consumer: o.Consumer, desc: o.Desc, flags: o.Flags}
}

// Bind attaches the socket to a queue of an interface. zeroCopy has the NIC read and write the
// frames' memory itself, or fails; else the kernel copies.
func (s *Socket) Bind(index, queue int, zeroCopy bool) error {
	to := &unix.SockaddrXDP{Ifindex: uint32(index), QueueID: uint32(queue), Flags: unix.XDP_USE_NEED_WAKEUP}
	if zeroCopy {
		to.Flags |= unix.XDP_ZEROCOPY
	} else {
		to.Flags |= unix.XDP_COPY
	}
	return unix.Bind(s.FD, to)
}

// Chunk returns the chunk at an address: memory of a frame to send.
func (s *Socket) Chunk(addr uint64) []byte {
	return s.memory[addr : addr+uint64(s.cfg.Chunk) : addr+uint64(s.cfg.Chunk)]
}

// ToSend returns the address of the k-th chunk for frames to send.
func (s *Socket) ToSend(k int) uint64 { return uint64((s.cfg.Receive + k) * s.cfg.Chunk) }

// IndexToSend returns which chunk for frames to send begins at an address, and false if none does.
func (s *Socket) IndexToSend(addr uint64) (k int, ok bool) {
	if addr < s.ToSend(0) || addr >= s.ToSend(s.cfg.Send) || addr%uint64(s.cfg.Chunk) != 0 {
		return 0, false
	}
	return int(addr/uint64(s.cfg.Chunk)) - s.cfg.Receive, true
}

// Frame returns the bytes of a received frame, and the address of its chunk. ok is false if the
// descriptor is of no chunk to receive into.
func (s *Socket) Frame(d Desc) (b []byte, chunk uint64, ok bool) {
	return frame(s.memory[:s.cfg.Receive*s.cfg.Chunk], s.cfg.Chunk, d)
}

// Expected returns where the beginning of the next received frame is expected: the kernel takes the
// chunks of the fill ring in order. It is for a look ahead; the frame is where its descriptor says.
func (s *Socket) Expected() []byte {
	const beginning = 128
	at, end := s.Fill.entries[s.Received.next&s.Fill.mask]+headroom, uint64(len(s.memory))
	if at > end || end-at < beginning {
		return nil
	}
	return s.memory[at : at+beginning]
}

// Wake calls the kernel: it sends what is in the tx ring.
func (s *Socket) Wake() unix.Errno {
	_, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.FD), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return e
}

// WakeReceive calls the kernel: it takes what is in the fill ring.
func (s *Socket) WakeReceive() {
	// Whatever it answers, the next one is told the same.
	_, _, _ = syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.FD), 0, 0, unix.MSG_DONTWAIT, 0, 0)
}

// Drops returns how many frames the kernel has dropped, as there was no room for them.
func (s *Socket) Drops() uint64 {
	var n unix.XDPStatistics
	if s.get(unix.XDP_STATISTICS, unsafe.Pointer(&n), unsafe.Sizeof(n)) != nil {
		return 0
	}
	return n.Rx_dropped + n.Rx_ring_full
}

// ZeroCopy reports whether the NIC reads and writes the frames' memory itself.
func (s *Socket) ZeroCopy() bool {
	var o struct{ Flags uint32 }
	err := s.get(unix.XDP_OPTIONS, unsafe.Pointer(&o), unsafe.Sizeof(o))
	return err == nil && o.Flags&unix.XDP_OPTIONS_ZEROCOPY != 0
}

func (s *Socket) set(option int, value unsafe.Pointer, size uintptr) error {
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(s.FD), unix.SOL_XDP, uintptr(option), uintptr(value), size, 0)
	if e != 0 {
		return e
	}
	return nil
}

func (s *Socket) get(option int, value unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.FD), unix.SOL_XDP, uintptr(option), uintptr(value),
		uintptr(unsafe.Pointer(&length)), 0)
	if e != 0 {
		return e
	}
	return nil
}
