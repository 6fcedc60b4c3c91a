package unixsocket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A client cannot send descriptors: closing one may hold the listener up for as long as the client
// likes. Neither before its connection is accepted nor afterwards; the listener can.
func TestListen_RefusesDescriptors(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS)
	if _ = unix.Close(fd); errors.Is(err, unix.ENOPROTOOPT) {
		t.Skip("the kernel has no SO_PASSRIGHTS (Linux 6.16)")
	}
	for _, network := range []string{"unix", "unixpacket"} {
		path := filepath.Join(t.TempDir(), "socket")
		l, err := Listen(network, path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.DialUnix(network, nil, &net.UnixAddr{Name: path, Net: network})
		if err != nil {
			t.Fatal(err)
		}
		rights := unix.UnixRights(int(os.Stdin.Fd()))
		refused := func(when string) {
			t.Helper()
			if _, _, err := c.WriteMsgUnix([]byte("x"), rights, nil); !errors.Is(err, unix.EPERM) {
				t.Errorf("%s: a client sends a descriptor %s: %v, want EPERM", network, when, err)
			}
		}
		refused("before it is accepted")
		s, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		refused("afterwards")
		if _, _, err := s.WriteMsgUnix([]byte("x"), rights, nil); err != nil {
			t.Errorf("%s: the listener sends one: %v", network, err)
		}
		if err := errors.Join(c.Close(), s.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}
