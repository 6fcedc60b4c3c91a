package shm

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// eventfd wakes a link that sleeps: others write to it. The runtime's poller watches it, and each
// write is an event of its own, so that nobody ever needs to read it. The link itself does not
// write to it, but has its poller look again: another process may have the eventfd block.
type eventfd struct {
	file *os.File
	conn syscall.RawConn
}

func newEventfd() (*eventfd, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	e := &eventfd{file: os.NewFile(uintptr(fd), "eventfd")}
	e.conn, err = e.file.SyscallConn()
	if err == nil {
		err = e.file.SetReadDeadline(time.Time{}) // fails if the runtime's poller did not take it
	}
	if err != nil {
		_ = e.file.Close() // the first error is the one to report
		return nil, fmt.Errorf("watch an eventfd: %w", err)
	}
	return e, nil
}

// copy returns a descriptor of the eventfd that does not keep Close from returning, or -1 if there
// is none: after Close, and where the process has as many as it may.
func (e *eventfd) copy() (fd int) {
	fd = -1
	_ = e.conn.Control(func(own uintptr) { // fails once it is closed
		if n, err := unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			fd = n
		}
	})
	return fd
}

// one is what is written to an eventfd.
var one uint64 = 1

// signal writes to an eventfd. It does not block: where the descriptor has no room, the one that it
// belongs to has more to wake up to than it will ever need. (Another process may have filled it,
// and have it block all the same, for as long as it is there: drain ends that.)
func signal(fd int) {
	_, _, _ = unix.Syscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
}

// drain makes room in an eventfd that a process has filled, and has it not block again. Who is
// blocked writing to it goes on. If that process has it block once more just then, drain may block
// itself, until there is something to be read.
func drain(fd int) {
	_ = unix.SetNonblock(fd, true) // it does not fail
	var b [8]byte
	_, _ = unix.Read(fd, b[:]) // it may be empty
}

// drainPause is the pause before an eventfd is drained again.
const drainPause = time.Millisecond

// drainUntil drains an eventfd until done, however often a process fills it anew, and closes it.
// What was read may have been written a moment ago, to wake a link whose poller has not looked yet:
// so that one is woken in any case.
func drainUntil(done <-chan struct{}, fd int) {
	for ended := false; !ended; {
		drain(fd)
		select {
		case <-done:
			ended = true
		case <-time.After(drainPause):
		}
	}
	signal(fd)
	_ = unix.Close(fd) // nothing is written by closing it
}

// checkEventfd reports whether a descriptor that another process has passed is an eventfd, and has
// it not block. Without /proc it takes what it gets.
func checkEventfd(fd int) error {
	if kind, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && kind != "anon_inode:[eventfd]" {
		return fmt.Errorf("its third descriptor is no eventfd but %s", kind)
	}
	return unix.SetNonblock(fd, true)
}
