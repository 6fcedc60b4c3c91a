package server

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
)

// openPacketSockets opens n packet sockets in this thread's namespace.
func openPacketSockets(n int) (fds []int, err error) {
	for range n {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// While programs close their sockets, one reading of the kernel's list has each that stays open, as
// long as all fit a page. One that is missed is taken for closed, and counts as its user's no more.
func TestReadSockets_MissesNone(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	missed, readings := 0, 0
	err := bed.Node(0).Do(func() error {
		for range 10 {
			others, err := openPacketSockets(40)
			if err != nil {
				return err
			}
			ours, err := openPacketSockets(8) // behind the others in the list
			if err != nil {
				return err
			}
			var closing sync.WaitGroup
			for k := range 8 { // each takes some 20 ms
				closing.Go(func() {
					for i := k; i < len(others); i += 8 {
						_ = unix.Close(others[i])
					}
				})
			}
			over := make(chan struct{})
			go func() { closing.Wait(); close(over) }()
			for open := true; open; readings++ {
				select {
				case <-over:
					open = false
				default:
				}
				text, err := readSockets()
				if err != nil {
					return err
				}
				living := map[uint64]bool{}
				if err := addInodes(living, text); err != nil {
					return err
				}
				for _, fd := range ours {
					var st unix.Stat_t
					if err := unix.Fstat(fd, &st); err != nil {
						return err
					}
					if !living[st.Ino] {
						missed++
					}
				}
			}
			for _, fd := range ours {
				_ = unix.Close(fd)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if missed > 0 {
		t.Errorf("%d sockets were missed in %d readings", missed, readings)
	}
}
