package shm

import (
	"errors"
	"net"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/unixsocket"
)

// owning is the process that has made the other end of a connection: the one whose link is there. A
// connection lasts as long as any process has its other end, and one that is forked has it, too,
// though it knows nothing of the link. So the end of the process is watched as well.
//
// Linux has had descriptors for that since 5.3, by number, and since 6.5 of a socket's peer, which
// another process cannot have instead, and which may be in another PID namespace. Where there is
// none, the end of the connection alone counts.
type owning struct {
	ended atomic.Bool
	file  *os.File
	done  chan struct{}
}

// watchOwner watches the process at the other end: when it ends, so does what is read from c. This
// process itself is not watched.
func watchOwner(c *net.UnixConn) *owning {
	o := new(owning)
	if cred, err := unixsocket.Peer(c); err != nil || int(cred.Pid) == os.Getpid() {
		return o
	}
	fd, ended := ownerDescriptor(c)
	if ended {
		o.end(c)
	}
	if fd < 0 {
		return o
	}
	_ = unix.SetNonblock(fd, true) // it does not fail, and has the runtime's poller take it
	o.file, o.done = os.NewFile(uintptr(fd), "pidfd"), make(chan struct{})
	raw, err := o.file.SyscallConn()
	go func() { // ends with the process, or by stop, which waits for it
		defer close(o.done)
		if err == nil && raw.Read(func(fd uintptr) bool { return canRead(int(fd)) }) == nil {
			o.end(c)
		}
	}()
	return o
}

// end notes that the process has ended, and has reading from c end as if it had closed its end.
func (o *owning) end(c *net.UnixConn) {
	o.ended.Store(true)
	_ = c.CloseRead() // fails if it is closed: then there is nothing to read
}

// stop ends the watch.
func (o *owning) stop() {
	if o.file != nil {
		_ = o.file.Close() // nothing is written by closing it
		<-o.done
	}
}

// hasNoOwner reports whether the process that has made the other end is known to have ended.
func hasNoOwner(c *net.UnixConn) bool {
	fd, ended := ownerDescriptor(c)
	if fd < 0 {
		return ended
	}
	defer func() { _ = unix.Close(fd) }()
	return canRead(fd)
}

// ownerDescriptor returns a descriptor of the process that has made the other end, which can be
// read once that has ended, or -1 if there is none to be had; ended says that it is known to have
// ended all the same.
func ownerDescriptor(c *net.UnixConn) (fd int, ended bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, false
	}
	err = unix.EBADF
	_ = raw.Control(func(socket uintptr) { // fails once it is closed
		fd, err = unix.GetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	})
	switch {
	case err == nil:
		return fd, false
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL): // before 6.16, of one that was reaped
		return -1, true
	}
	cred, err := unixsocket.Peer(c)
	if err != nil || cred.Pid <= 0 { // closed, or in a PID namespace that is not this one's
		return -1, false
	}
	return processDescriptor(int(cred.Pid))
}

// processDescriptor is ownerDescriptor of a process by its number, which may be another one's by
// now: then the end of the right one is not noticed.
func processDescriptor(pid int) (fd int, ended bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		return fd, false
	}
	return -1, errors.Is(err, unix.ESRCH) || errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// canRead reports whether a descriptor can be read.
func canRead(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
