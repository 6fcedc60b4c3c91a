package cli

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// CheckListen refuses what is no TCP address to listen on: the value of a flag, or "" without one.
func CheckListen(flag, address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return Misuse("--%s %q: want HOST:PORT, with a port of 0 to 65535 or the name of one", flag, address)
	}
	return nil
}

// ListenError adds to why a TCP address cannot be listened on what helps.
func ListenError(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w (another process listens there: end that one, or give another address)", err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w (ports below 1024 take CAP_NET_BIND_SERVICE: run as root, or "+
			"setcap cap_net_raw,cap_net_bind_service+ep PROGRAM, or give another port)", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w (no interface here has that address: ip addr lists those that there are)", err)
	}
	return err
}
