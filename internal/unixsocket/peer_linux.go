package unixsocket

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// Peer returns the user, the group and the process that have connected to a Unix socket, as the
// kernel has noted them (SO_PEERCRED, unix(7)).
func Peer(c *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(controlErr, err)
}
