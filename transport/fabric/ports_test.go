package fabric

import (
	"runtime"
	"testing"
	"weak"

	"github.com/rawlane/rawlane/transport"
)

// A link that was closed leaves its port to another one, however often, and that one has a port of
// its own kind.
func TestClose_LeavesThePortToOthers(t *testing.T) {
	f := newFabric(t, Config{QueueFrames: 2})
	s := f.AddSwitch("")
	a := attach(t, s, Station{})
	for i := range 5000 {
		l, err := f.Attach(s, Station{Port: Access(transport.VID(2 + i%2))})
		if err != nil {
			t.Fatalf("link %d, with one beside it: %v", i, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b := attach(t, s, Station{})
	send(t, a, numbered(b.MAC(), 5))
	wantNumbers(t, "the last one", b, 5)
}

// Links that do not all fit are not attached at all.
func TestLinks_AllOrNone(t *testing.T) {
	f := newFabric(t, Config{QueueFrames: 2, MTU: MinMTU})
	s := f.AddSwitch("")
	if links, err := s.Links(5000); err == nil || links != nil {
		t.Fatalf("%d links, %v", len(links), err)
	}
	attach(t, s, Station{})
	if n := s.fwd.Ports(); n != 1 {
		t.Errorf("%d ports are taken, want 1", n)
	}
}

// The fabric keeps neither the memory of the last frame alive, of which the headroom is part, nor a
// link that was closed.
func TestSend_KeepsNothing(t *testing.T) {
	f := newFabric(t, Config{})
	s := f.AddSwitch("")
	a := attach(t, s, Station{})
	memory, closed := func() (weak.Pointer[[1 << 16]byte], weak.Pointer[Link]) {
		buf := new([1 << 16]byte)
		b, err := f.Attach(s, Station{})
		if err != nil {
			t.Fatal(err)
		}
		frame := transport.Frame{Dst: b.MAC(), Headroom: buf[:18], Payload: buf[18:100]}
		if _, err := a.Send([]transport.Frame{frame}); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		return weak.Make(buf), weak.Make(b)
	}()
	runtime.GC()
	runtime.GC()
	if memory.Value() != nil {
		t.Error("the frame's memory is kept")
	}
	if closed.Value() != nil {
		t.Error("the link that was closed is kept")
	}
	runtime.KeepAlive(f)
}
