package ring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapRing maps the ring of a socket.
func mapRing(fd, size int) ([]byte, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// retire puts empty memory in the place of a ring, for good. To read a view of a frame after Close
// is a fault of the program, but must not end it, as an access to memory that is gone does. What
// stays costs addresses, and no memory: the kernel has the ring's own back when its socket is
// closed.
func retire(memory []byte) {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_FIXED
	// Should it fail, the ring's memory stays, which does no harm but to cost it.
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(&memory[0]), uintptr(len(memory)), unix.PROT_READ, flags)
}
