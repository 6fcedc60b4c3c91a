package server

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// credentials are the user, the group and the process that have connected to a Unix socket, as the
// kernel has noted them (SO_PEERCRED, unix(7)).
func credentials(c *net.UnixConn) string {
	raw, err := c.SyscallConn()
	if err != nil {
		return ""
	}
	var cred *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || asked != nil {
		return ""
	}
	return fmt.Sprintf("uid %d gid %d pid %d", cred.Uid, cred.Gid, cred.Pid)
}
