package room

import "golang.org/x/sys/unix"

// HaveDescriptors returns an error if this process is about to run out of descriptors. It comes
// before package ebpf loads a program, which takes a lack of them for one of features, and
// remembers that.
func HaveDescriptors() (err error) {
	var fds [8]int // more than it opens at a time
	n := 0
	for ; n < len(fds) && err == nil; n++ {
		fds[n], err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	}
	for _, fd := range fds[:n] {
		if fd >= 0 {
			_ = unix.Close(fd) // it was only a try
		}
	}
	return err
}
