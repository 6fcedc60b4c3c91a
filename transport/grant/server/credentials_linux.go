package server

import (
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// credentials are who a process is, as the kernel tells it: when it connected or began to listen.
type credentials struct {
	rules.Peer
	pid int
}

// peer returns the credentials of a connection's other end.
func peer(u *net.UnixConn) (who *credentials, err error) {
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	if e := raw.Control(func(fd uintptr) { who, err = socketCredentials(int(fd)) }); e != nil {
		return nil, e
	}
	return who, err
}

func socketCredentials(fd int) (*credentials, error) {
	u, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, fmt.Errorf("credentials of the other end: %w", err)
	}
	groups, err := peerGroups(fd)
	if err != nil {
		return nil, fmt.Errorf("groups of the other end: %w", err)
	}
	return &credentials{rules.Peer{UID: u.Uid, Groups: append(groups, u.Gid)}, int(u.Pid)}, nil
}

// peerGroups returns the supplementary groups of the other end (SO_PEERGROUPS).
func peerGroups(fd int) ([]uint32, error) {
	groups := make([]uint32, 32)
	for {
		size := uint32(4 * len(groups))
		_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch e {
		case 0:
			return groups[:size/4], nil
		case unix.ERANGE: // size is what it takes
			groups = make([]uint32, size/4)
			continue
		}
		return nil, e
	}
}
