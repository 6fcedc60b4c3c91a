package server

import (
	"fmt"
	"net"
	"os"
)

// NotifySystemd tells systemd of a state, such as "READY=1", if the service asks for that
// (Type=notify). Elsewhere it does nothing.
func NotifySystemd(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if path[0] == '@' { // an abstract name
		path = "\x00" + path[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
