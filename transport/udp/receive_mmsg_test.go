//go:build linux && !rawlane_portable

package udp

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// A receive that finds its socket closed, as by a Close at the same time, holds nobody up.
func TestReceive_OfAClosedSocket(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.socket.receive(); !errors.Is(err, unix.EBADF) {
		t.Errorf("%v, want EBADF", err)
	}
	if !l.socket.rxMu.TryLock() {
		t.Fatal("it still holds the socket's lock")
	}
	l.socket.rxMu.Unlock()
}
