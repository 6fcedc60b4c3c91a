//go:build unix

package testbed

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// isHungUp reports whether nobody can read any more what is written to a pipe or a socket.
func isHungUp(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLNVAL == 0
}

// waitHangup returns when nobody can read any more what is written to a pipe or a socket. For a
// file, or if it cannot be told, it does not return.
func waitHangup(f *os.File) {
	for {
		fds := []unix.PollFd{{Fd: int32(f.Fd())}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil, fds[0].Revents&unix.POLLNVAL != 0:
			select {}
		default:
			return
		}
	}
}
