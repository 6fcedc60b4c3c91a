package testbed

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Lingering returns a TCP socket whose last close waits for an hour: its peer does not read what it
// has sent. The peer's end ends that.
func Lingering(t testing.TB) (fd int, peer net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	if peer, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.SetLinger(3600), c.SetWriteDeadline(time.Now().Add(100*time.Millisecond))); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = c.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	if fd, err = unix.Dup(int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	return fd, peer
}
