//go:build linux && !rawlane_portable

package udp

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
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

// The first frame after StampFrames has a stamp, also where polls before have found nothing, once the
// kernel stamps at all: it begins some time after the first socket asks for it.
func TestStampFrames_AfterIdlePolls(t *testing.T) {
	stamped := func(a, b *Link) bool {
		if n, err := a.Send(plain(b.MAC(), 1, 100)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		count(t, b, 1)
		return !b.ReceivedStamp(0).Software.IsZero()
	}
	warm, other := linked(t)
	if err := other.StampFrames(true); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !stamped(warm, other); {
		if time.Now().After(end) {
			t.Skip("the kernel stamps nothing")
		}
	}
	a, b := linked(t)
	in := make([]transport.Frame, 1)
	for range 3 {
		if n, err := b.Poll(in); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := b.StampFrames(true); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if !stamped(a, b) {
			t.Errorf("frame %d has no stamp", i)
		}
	}
}
