package ring

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A view of a frame that is read after Close is a fault of the program, but must not end it: a
// fault of memory cannot be recovered from. So the addresses of a closed ring stay mapped, to empty
// memory that takes no room, until another ring of that size takes them.

// retired holds the addresses of closed rings, by their size.
var retired struct {
	mu    sync.Mutex
	areas map[int][]unsafe.Pointer
}

// mapRing maps the ring of a socket.
func mapRing(fd, size int) ([]byte, error) {
	at, flags := takeRetired(size), unix.MAP_SHARED
	if at != nil {
		flags |= unix.MAP_FIXED
	}
	p, err := unix.MmapPtr(fd, 0, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		if at != nil {
			putRetired(at, size)
		}
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// retire puts empty memory in the place of a ring. The kernel has the ring's own back when its
// socket is closed.
func retire(memory []byte) {
	at, size := unsafe.Pointer(&memory[0]), len(memory)
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_FIXED
	if _, err := unix.MmapPtr(-1, 0, at, uintptr(size), unix.PROT_READ, flags); err != nil {
		return // the ring's memory stays as it is, and its pages are lost
	}
	putRetired(at, size)
}

func takeRetired(size int) (at unsafe.Pointer) {
	retired.mu.Lock()
	defer retired.mu.Unlock()
	if free := retired.areas[size]; len(free) > 0 {
		at = free[len(free)-1]
		retired.areas[size] = free[:len(free)-1]
	}
	return at
}

func putRetired(at unsafe.Pointer, size int) {
	retired.mu.Lock()
	defer retired.mu.Unlock()
	if retired.areas == nil {
		retired.areas = make(map[int][]unsafe.Pointer)
	}
	retired.areas[size] = append(retired.areas[size], at)
}
