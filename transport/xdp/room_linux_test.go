package xdp

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// A wait for room is a short one, and then it is the caller's to try again. The context's end, the
// interface's and the link's are what they are in any wait.
func TestWaitForRoom_Ends(t *testing.T) {
	bed, a, _ := ends(t)
	long, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := a.waitForRoom(long); err != nil || long.Err() != nil {
		t.Errorf("nothing happens: %v", err)
	}
	past, cancelPast := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelPast()
	if err := a.waitForRoom(past); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline that has passed: %v", err)
	}
	canceled, cancelNow := context.WithCancel(t.Context())
	cancelNow()
	if err := a.waitForRoom(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that was canceled: %v", err)
	}
	if err := bed.Node(0).SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil && long.Err() == nil { // until the kernel has told
		err = a.waitForRoom(long)
	}
	if !errors.Is(err, transport.ErrInterfaceDown) {
		t.Errorf("the interface is down: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.waitForRoom(long); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the link is closed: %v", err)
	}
}

// While wake-ups are masked a full NIC ends no wait; the mask's end ends one.
func TestWait_NICIsFullAndWakeupsAreMasked(t *testing.T) {
	_, a, b := ends(t)
	nic := full(t)
	a.MaskWakeups(true)
	defer a.sender.replace(a.sender.replace(nic))
	if _, err := a.Send(numbered(b, 1)); err != nil {
		t.Fatal(err)
	}
	wait := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return a.Wait(ctx)
	}
	_ = wait(20 * time.Millisecond) // Send has ended the one that was in progress, or this one
	if err := wait(20 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("masked: %v, want that nothing ends it", err)
	}
	a.MaskWakeups(false) // with which the kernel itself may try again
	if err := wait(20 * time.Second); err != nil {
		t.Errorf("unmasked: %v", err)
	}
}

// Where all memory for frames is with a zero-copy NIC, Send is busy, and wakes the NIC, which says
// then what has left. The frames go in order.
func TestSend_AllMemoryIsUnderWay(t *testing.T) {
	_, a, b := ends(t)
	a.sender.zeroCopy = true // as one it is asked for every batch, and tells of no room
	socket := a.sender.socket.FD
	a.sender.socket.FD = full(t)
	defer func() { a.sender.socket.FD = socket }()
	number := func(k int) []transport.Frame {
		f := numbered(b, 1)
		binary.BigEndian.PutUint32(f[0].Payload, uint32(k))
		return f
	}
	for k := range sendFrames {
		if n, err := a.Send(number(k)); n != 1 || err != nil {
			t.Fatalf("frame %d: %d, %v", k, n, err)
		}
	}
	if n, err := a.Send(number(sendFrames)); n != 0 || !errors.Is(err, transport.ErrBusy) {
		t.Fatalf("with no memory: %d, %v; want ErrBusy", n, err)
	}
	a.sender.socket.FD = socket
	in := make([]transport.Frame, 16)
	for next, sent, end := 0, sendFrames, time.Now().Add(20*time.Second); next < sendFrames; {
		n, err := a.Send(number(sent)) // also as the kernel, which copies, takes but a batch each time
		if err != nil && !errors.Is(err, transport.ErrBusy) {
			t.Fatal(err)
		}
		sent += n
		n, err = b.Poll(in)
		if err != nil || time.Now().After(end) {
			t.Fatalf("%d of %d frames came: %v", next, sent, err)
		}
		for _, f := range in[:n] {
			if got := int(binary.BigEndian.Uint32(f.Payload)); got != next {
				t.Fatalf("frame %d came, want %d", got, next)
			}
			next++
		}
	}
}

// The kernel is called once for 32 frames.
func TestSend_CallsTheKernelForEachBatch(t *testing.T) {
	_, a, b := ends(t)
	a.sender.zeroCopy = true // what it is asked for then is one call for each batch, whatever leaves
	count, _ := counting(t, a)
	for _, c := range []struct{ frames, calls int }{{1, 1}, {32, 1}, {33, 2}, {64, 2}, {65, 3}} {
		if n, err := a.Send(numbered(b, c.frames)); n != c.frames || err != nil {
			t.Fatalf("%d frames: %d, %v", c.frames, n, err)
		}
		if calls := count(); calls != c.calls {
			t.Errorf("%d frames: %d calls, want %d", c.frames, calls, c.calls)
		}
	}
}

// A call that took no frame has lost one, which the next call counts as taken: the kernel is called
// again at once.
func TestSend_CallsAgainWhereAFrameIsLost(t *testing.T) {
	_, a, b := ends(t)
	count, undo := counting(t, a)
	if n, err := a.Send(numbered(b, 1)); n != 1 || err != nil {
		t.Fatalf("Send: %d, %v", n, err)
	}
	if calls := count(); calls < 2 {
		t.Errorf("%d calls, want another one", calls)
	}
	undo()
	if _, err := a.Send(nil); err != nil {
		t.Fatal(err)
	}
	if got := arrived(t, b, 1); got[0] != 1 {
		t.Errorf("frame %d came", got[0])
	}
}

// counting has a link's calls of the kernel be empty datagrams, which no frame leaves by: they
// succeed until a few of them wait. count returns how many came since it was called last.
func counting(t *testing.T, l *Link) (count func() int, undo func()) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	socket := l.sender.socket.FD
	l.sender.socket.FD = fds[0]
	undo = sync.OnceFunc(func() {
		l.sender.socket.FD = socket
		_ = errors.Join(unix.Close(fds[0]), unix.Close(fds[1]))
	})
	t.Cleanup(undo)
	return func() (calls int) {
		for ; ; calls++ {
			if _, _, err := unix.Recvfrom(fds[1], make([]byte, 1), unix.MSG_DONTWAIT); err != nil {
				return calls
			}
		}
	}, undo
}

// A socket has room for as many frames as were asked for, at least: rings have powers of two.
func TestOpen_Slots(t *testing.T) {
	testbed.NeedXDP(t, func(ifname string) error { _, err := Probe(ifname); return err })
	node := testbed.ForTest(t, testbed.Config{}).Node(0)
	for asked, want := range map[int]int{0: DefaultSlots, 2: 2, 3: 4, 64: 64, 65: 128} {
		l, err := testbed.In(node, func() (*Link, error) { return Open("eth0", Config{Slots: asked}) })
		if err != nil {
			t.Fatal(err)
		}
		if got := cap(l.door.queues[0].taken); got != want {
			t.Errorf("Slots %d: %d, want %d", asked, got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The kernel lets all frames of the largest size be under way: what it counts for one is more than
// the frame.
func TestOpen_RoomToSend(t *testing.T) {
	_, a, _ := ends(t)
	room, err := unix.GetsockoptInt(a.sender.socket.FD, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		t.Fatal(err)
	}
	if frame := a.MTU() + transport.MaxHeaderLen; room < sendFrames*frame {
		t.Errorf("room for %d bytes: not for %d frames of %d", room, sendFrames, frame)
	}
}
