package shm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// memories are the mappings of a link. Those that are retired have empty memory in their place, and
// are used again: to read a view of a frame after the next Poll or Close is a fault of the program,
// but must not end it, as an access to memory that is gone does. What stays costs addresses, and no
// memory; and no process that had the memory before has what is mapped there next.
type memories struct {
	mu    sync.Mutex // guards spare
	spare [][]byte
}

// ofClosed are those that links have left which were closed, for others. A call of Poll that was in
// progress may still write there, so they are left once nobody has the link any more: when it is
// collected.
var ofClosed memories

// uncollected is how many bytes of addresses links have closed with since the last collection that
// Open has asked for, and collectAfter how many it takes to ask for one: a link is small, and so a
// program that does little else may open and close hundreds before the runtime collects one.
var uncollected atomic.Int64

const collectAfter = 64 << 20

// newMemories makes the mappings of a link, which are left to others when that is collected.
func newMemories(l *Link) *memories {
	if uncollected.Load() > collectAfter {
		uncollected.Store(0)
		runtime.GC()
	}
	m := new(memories)
	runtime.AddCleanup(l, ofClosed.inherit, m)
	return m
}

// inherit takes what a link has left.
func (m *memories) inherit(from *memories) {
	from.mu.Lock()
	spare := from.spare
	from.spare = nil
	from.mu.Unlock()
	m.mu.Lock()
	m.spare = append(m.spare, spare...)
	m.mu.Unlock()
}

// take returns a mapping of a size that was retired, or nil.
func (m *memories) take(size int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.spare, func(s []byte) bool { return len(s) == size })
	if i < 0 {
		return nil
	}
	spare, last := m.spare[i], len(m.spare)-1
	m.spare[i], m.spare[last] = m.spare[last], nil
	m.spare = m.spare[:last]
	return spare
}

// closed says that the link has retired all that it had.
func (m *memories) closed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.spare {
		uncollected.Add(int64(len(s)))
	}
}

// newMemory makes memory that can be shared, and that nobody can shrink. Errors:
// transport.ErrNotSupported.
func newMemory(size int) (fd int, err error) { return newMemoryWith(size, neverOvercommits()) }

// neverOvercommits reports whether the system refuses memory beyond a limit. Of memory like this it
// counts what was touched, and a process that touches more dies of it (SIGBUS).
func neverOvercommits() bool {
	mode, _ := os.ReadFile("/proc/sys/vm/overcommit_memory") // none if it cannot be read
	return strings.TrimSpace(string(mode)) == "2"
}

// newMemoryWith is newMemory, with all of the memory there from the beginning, if that is wanted.
func newMemoryWith(size int, whole bool) (fd int, err error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err = unix.MemfdCreate("rawlane-shm", flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.3
		fd, err = unix.MemfdCreate("rawlane-shm", flags)
	}
	if errors.Is(err, unix.ENOSYS) {
		return -1, fmt.Errorf("%w: memfd_create: %w", transport.ErrNotSupported, err)
	}
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	err = unix.Ftruncate(fd, int64(size))
	if err == nil && whole {
		err = unix.Fallocate(fd, 0, 0, int64(size))
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = unix.Close(fd) // the first error is the one to report
		if errors.Is(err, unix.EFBIG) {
			err = fmt.Errorf("%w (the limit for files is smaller: raise ulimit -f)", err)
		}
		return -1, fmt.Errorf("make memory of %d bytes: %w", size, err)
	}
	return fd, nil
}

// tryMemory reports whether memory of a size can be made.
func tryMemory(size int) error {
	fd, err := newMemory(size)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// checkMemory reports whether memory that another process has made is large enough, and stays so:
// an access behind the end of a file that was cut ends the process. Memory of huge pages is not
// taken: the kernel rounds up what is mapped of it, which would replace what lies behind.
func checkMemory(fd, size int) error {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return errors.New("its memory is not sealed")
	}
	if seals&(unix.F_SEAL_WRITE|unix.F_SEAL_FUTURE_WRITE) != 0 {
		return errors.New("its memory is sealed against writing")
	}
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil || s.Size < int64(size) {
		return fmt.Errorf("its memory has %d bytes (want %d)", s.Size, size)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || uint32(fs.Type) == unix.HUGETLBFS_MAGIC {
		return errors.New("its memory is of huge pages")
	}
	return nil
}

// mapShared maps memory, in the place of some that was retired if there is any of that size. It is
// mapped elsewhere first: an attempt that fails may leave a hole, as a kernel unmaps what is there.
func (m *memories) mapShared(fd, size int) ([]byte, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	spare := m.take(size)
	if spare == nil {
		spare = ofClosed.take(size)
	}
	if spare != nil {
		const flags = unix.MREMAP_MAYMOVE | unix.MREMAP_FIXED
		if at, err := unix.MremapPtr(p, uintptr(size), unsafe.Pointer(&spare[0]), uintptr(size), flags); err == nil {
			p = at // else the place is given up: no memory for tables
		}
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// retire puts empty memory in the place of a mapping.
func (m *memories) retire(memory []byte) {
	if memory == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_FIXED
	const mode = unix.PROT_READ | unix.PROT_WRITE
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&memory[0]), uintptr(len(memory)), mode, flags)
	if err == nil { // else it stays, which does no harm but to cost memory
		m.spare = append(m.spare, memory)
	}
}
