package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// wasReset reports whether a TCP connection was reset of which a read has seen the end, and what is
// written to it has not ended. The kernel tells one call alone of a reset: where that was the other
// half's write, reads see an end like any other.
func wasReset(c net.Conn) (yes bool) {
	t, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return true // the other half has closed it
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		yes = err == nil && info.State == unix.BPF_TCP_CLOSE // one whose other end has ended is in CLOSE-WAIT
	})
	return yes || err != nil
}
