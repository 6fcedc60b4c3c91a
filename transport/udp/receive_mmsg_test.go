//go:build linux && !rawlane_portable

package udp

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"unsafe"

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

// The memory of messages and of what the kernel says of them is each one's own.
func TestInbox_MemoryIsApart(t *testing.T) {
	in := new(inbox)
	in.init()
	type span struct{ from, to uintptr }
	var all []span
	for i := range in.msgs {
		for _, b := range [][]byte{in.bufs[i], in.control[i]} {
			from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
			all = append(all, span{from, from + uintptr(len(b))})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(all); i++ {
		if all[i].from < all[i-1].to {
			t.Errorf("%d bytes are of two", all[i-1].to-all[i].from)
		}
	}
}
