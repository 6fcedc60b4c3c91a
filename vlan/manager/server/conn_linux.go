package server

import (
	"fmt"
	"net"

	"github.com/rawlane/rawlane/internal/unixsocket"
)

// credentials are the user, the group and the process that have connected to a Unix socket.
func credentials(c *net.UnixConn) string {
	cred, err := unixsocket.Peer(c)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("uid %d gid %d pid %d", cred.Uid, cred.Gid, cred.Pid)
}
