//go:build unix

package pmi

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// inherit makes a connection of a socket that the process has inherited, in its place. What is no
// socket is somebody else's, and stays as it is.
func inherit(fd int) (net.Conn, error) {
	number, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	own := os.NewFile(uintptr(number), "PMI")
	conn, err := net.FileConn(own) // a copy, too
	if err = errors.Join(err, own.Close()); err != nil {
		return nil, err
	}
	return conn, unix.Close(fd)
}
