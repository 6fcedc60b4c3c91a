package shm

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
