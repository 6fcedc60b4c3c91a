package unixsocket

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// refuseDescriptors has the kernel refuse descriptors that clients send (EPERM). One that nobody
// takes is closed by the process that reads the message or closes the connection, and its sender
// chooses how long that takes: a TCP socket lingers as long as it was told to (SO_LINGER).
func refuseDescriptors(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) // older kernels lack it
	})
}
