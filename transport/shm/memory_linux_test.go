package shm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/hello"
)

// Memory of huge pages is refused: the kernel maps whole ones, also over what lies behind a mapping
// that is used again.
func TestCheckMemory_HugePages(t *testing.T) {
	fd, err := unix.MemfdCreate("huge", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_HUGETLB)
	if err != nil {
		t.Skipf("the kernel has no huge pages: %v", err)
	}
	defer func() { _ = unix.Close(fd) }()
	const size = 1 << 30 // of any huge page
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	if checkMemory(fd, os.Getpagesize()) == nil {
		t.Error("memory of huge pages is taken")
	}
}

// Memory that cannot be mapped costs none that was retired: that is empty, and is used next.
func TestMapShared_Fails(t *testing.T) {
	size := os.Getpagesize()
	make1 := func(seals int) int {
		fd, err := unix.MemfdCreate("sealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		if err := unix.Ftruncate(fd, int64(size)); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			t.Fatal(err)
		}
		return fd
	}
	var m memories
	used, err := m.mapShared(make1(unix.F_SEAL_SHRINK), size)
	if err != nil {
		t.Fatal(err)
	}
	used[0] = 1
	m.retire(used)
	for _, seal := range []int{unix.F_SEAL_WRITE, unix.F_SEAL_FUTURE_WRITE} {
		fd := make1(unix.F_SEAL_SHRINK | seal)
		if err := checkMemory(fd, size); err == nil || !strings.Contains(err.Error(), "sealed against writing") {
			t.Errorf("seal %#x: %v", seal, err)
		}
		if _, err := m.mapShared(fd, size); !errors.Is(err, unix.EPERM) {
			t.Errorf("seal %#x: %v, want that it cannot be mapped", seal, err)
		}
		if len(m.spare) != 1 || used[0] != 0 {
			t.Errorf("seal %#x: %d mappings are to be used again, and the first one has %d in it; want one, and 0",
				seal, len(m.spare), used[0])
		}
	}
	again, err := m.mapShared(make1(unix.F_SEAL_SHRINK), size)
	if err != nil || &again[0] != &used[0] || len(m.spare) != 0 {
		t.Errorf("it is not used again: %v, and %d are left", err, len(m.spare))
	}
	m.retire(again)
}

// A hello that a link would say after it was closed is not said: the number of its eventfd may be
// another file's by then.
func TestSay_AfterClose(t *testing.T) {
	l := opened(t, Folder(t), 1)
	ours, theirs := socketPair(t)
	if err := l.say(theirs, &half{ringFD: l.bellFD}); err != nil {
		t.Fatal(err)
	}
	_, fds, err := receive(ours)
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	if err != nil || len(fds) != hello.Descriptors {
		t.Fatal(len(fds), err)
	}
	if err := l.event.file.Close(); err != nil { // as Close does, while it waits for those that meet
		t.Fatal(err)
	}
	other, err := os.Open(os.DevNull) // has the number, most likely
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if err := l.say(theirs, &half{ringFD: l.bellFD}); err == nil {
		t.Error("another file was passed in place of the eventfd")
	}
}

// addresses are where a link's memory is mapped, and was.
func addresses(l *Link) (all []*byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.sources {
		if s := l.sources[i].Load(); s != nil {
			all = append(all, &s.memory[0])
		}
	}
	for _, s := range l.met {
		all = append(all, &s.ringMemory[0], &s.bellMemory[0])
	}
	l.memories.mu.Lock()
	defer l.memories.mu.Unlock()
	for _, s := range l.memories.spare {
		all = append(all, &s[0])
	}
	return append(all, &l.bellPage[0])
}

// What a closed link has mapped is used by others once it is collected, and not before: a Poll may
// still write there.
func TestMemories_OfClosedLinks(t *testing.T) {
	dir := Folder(t)
	stays := opened(t, dir, 1)
	collect := func() {
		for range 3 {
			runtime.GC()
		}
	}
	own := func(l *Link) []*byte {
		eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(stays.Stations()) == 1 })
		return addresses(l)
	}
	closed := opened1(t, dir, 2)
	had := own(closed)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stays", func() bool { return len(stays.Stations()) == 0 })
	collect()
	next := opened1(t, dir, 3)
	for _, at := range own(next) {
		if slices.Contains(had, at) {
			t.Error("memory of a link is another's, though a Poll of the first one may still write to it")
		}
	}
	closed.MaskWakeups(true) // writes to the bell that it had
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stays", func() bool { return len(stays.Stations()) == 0 })
	eventually(t, "no memory is left by a link that was collected", func() bool {
		collect()
		ofClosed.mu.Lock()
		defer ofClosed.mu.Unlock()
		return slices.ContainsFunc(ofClosed.spare, func(s []byte) bool { return slices.Contains(had, &s[0]) })
	})
	ofClosed.mu.Lock()
	ofClosed.spare = slices.DeleteFunc(ofClosed.spare, func(s []byte) bool { return !slices.Contains(had, &s[0]) })
	ofClosed.mu.Unlock()
	again := opened(t, dir, 4)
	if at := own(again); !slices.ContainsFunc(at, func(p *byte) bool { return slices.Contains(had, p) }) {
		t.Error("memory that was left is not used again")
	}
}

// opened1 is opened that does not hold on to the link.
func opened1(t *testing.T, dir string, n byte) *Link {
	t.Helper()
	l, err := Open("test", Config{Dir: dir, MTU: 64, MAC: transport.MAC{2, 0, 0, 0, 0, n}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Links that are opened and closed again and again take no more addresses after a while.
func TestMemories_AreBounded(t *testing.T) {
	dir := Folder(t)
	stays := opened(t, dir, 1)
	const rounds, ring, most = 40, 16 << 20, 4 * collectAfter
	before := mapped(t)
	for range rounds { // 640 MiB in all
		l, err := Open("test", Config{Dir: dir, RingBytes: ring})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(stays.Stations()) == 1 })
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it stays", func() bool { return len(stays.Stations()) == 0 })
	}
	if grown := mapped(t) - before; grown > most {
		t.Errorf("%d links have left %d MiB of mappings, want %d at most", rounds, grown>>20, most>>20)
	}
}

// mapped returns how many bytes of addresses this process has mapped.
func mapped(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	var pages int
	if _, err := fmt.Sscan(string(b), &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// Where files may not be as long as a ring, Open says so, and what to do: the link would meet nobody.
// The limit is of files that package testing writes, too, but for a process of the test's own.
func TestOpen_LimitOfFiles(t *testing.T) {
	if !testbed.Alone(t) {
		return
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limited := before
	limited.Cur = 64 << 10
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	l, err := Open("test", Config{Dir: Folder(t)})
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EFBIG) || !strings.Contains(err.Error(), "ulimit -f") {
		t.Errorf("%v, want EFBIG and the limit's name", err)
	}
	if err == nil {
		_ = l.Close()
	}
}

// Where the system never overcommits all of the memory is there before it is used: it would end the
// process that touches what is not. Elsewhere none is.
func TestNewMemory_Whole(t *testing.T) {
	const size = 1 << 19
	for whole, want := range map[bool]int64{false: 0, true: size} {
		fd, err := newMemoryWith(size, whole)
		if err != nil {
			t.Fatal(err)
		}
		var s unix.Stat_t
		err = unix.Fstat(fd, &s)
		_ = unix.Close(fd)
		const block = 512 // of stat(2)
		if got := s.Blocks * block; err != nil || got != want {
			t.Errorf("whole %v: %d bytes are there, %v; want %d", whole, got, err, want)
		}
	}
}
