package xsk

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memorySeals keep a file of memory as large as it is: who maps it gets no fault by another's
// truncation.
const memorySeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// allocate makes the memory for frames.
func (s *Socket) allocate() (err error) {
	size := s.cfg.MemoryBytes()
	if s.cfg.Shared {
		if s.MemoryFD, err = makeMemory(size); err == nil {
			s.memory, err = mapMemory(s.MemoryFD, size)
		}
	} else {
		s.memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	}
	if err != nil {
		return fmt.Errorf("allocate %d bytes for frames: %w", size, err)
	}
	return nil
}

// makeMemory makes a file of memory, whose size is fixed.
func makeMemory(size int) (fd int, err error) {
	fd, err = unix.MemfdCreate("rawlane-frames", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, memorySeals)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func mapMemory(fd, size int) ([]byte, error) {
	return unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
}

// IsMemory reports whether a file is memory of that size, and stays so.
func IsMemory(fd, size int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Size != int64(size) {
		return false
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	return err == nil && seals&unix.F_SEAL_SHRINK != 0
}

// Close gives the queue back. The rings go first: while one is mapped, the queue stays taken.
// Views of frames show nothing of use after it, but reading them is no fault.
func (s *Socket) Close() error {
	var errs []error
	for _, m := range s.maps {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	errs = append(errs, unix.Close(s.FD))
	if s.MemoryFD >= 0 {
		errs = append(errs, unix.Close(s.MemoryFD))
	}
	s.FD, s.MemoryFD, s.maps = -1, -1, nil
	if s.memory != nil {
		retire(s.memory)
	}
	return errors.Join(errs...)
}

// Discard is Close where there are no views of frames.
func (s *Socket) Discard() error {
	memory := s.memory
	s.memory = nil
	err := s.Close()
	if memory != nil {
		err = errors.Join(err, unix.Munmap(memory))
	}
	return err
}

// retire puts empty memory in the place of the frames', for good. To read a view of a frame after
// Close is a fault of the program, but must not end it, as an access to memory that is gone does.
// What stays costs addresses, and no memory.
func retire(memory []byte) {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_FIXED
	// Should it fail, the memory stays, which does no harm but to cost it.
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(&memory[0]), uintptr(len(memory)), unix.PROT_READ, flags)
}
