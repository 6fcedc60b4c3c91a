package mcd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockPort takes a name that one process in this network namespace can have: that of an abstract
// Unix socket. It vanishes with its owner, however that ends. The socket listens, so that another
// process that wants the name can ask the kernel for the owner.
func lockPort(name string, port PortID) (io.Closer, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("port %d: lock: %w", port, err)
	}
	addr := &unix.SockaddrUnix{Name: "@" + name}
	err = unix.Bind(fd, addr)
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN) // who asks stays in the queue, as nobody accepts
	}
	if err == nil {
		return os.NewFile(uintptr(fd), name), nil
	}
	_ = unix.Close(fd)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, &PortBusyError{Port: port, PID: listener(addr)}
	}
	return nil, fmt.Errorf("port %d: lock: %w", port, err)
}

// listener returns the process that listens at addr, or 0 if the kernel does not say.
func listener(addr *unix.SockaddrUnix) int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if unix.Connect(fd, addr) == nil {
		if cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			return int(cred.Pid)
		}
	}
	return 0
}
