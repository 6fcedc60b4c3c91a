package xdp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// ends opens links on a bed of two, for as long as the test.
func ends(t *testing.T) (bed *testbed.Bed, a, b *Link) {
	t.Helper()
	testbed.NeedXDP(t, func(ifname string) error { _, err := Probe(ifname); return err })
	bed = testbed.ForTest(t, testbed.Config{})
	a, b = testbed.OpenPair(t, bed, func(ifname string) (*Link, error) { return Open(ifname, Config{}) })
	return bed, a, b
}

func numbered(to *Link, n int) (frames []transport.Frame) {
	for i := range n {
		frames = append(frames, transport.Frame{
			Dst: to.MAC(), EtherType: transport.EtherTypeDefault, Payload: bytes.Repeat([]byte{byte(i + 1)}, 64),
		})
	}
	return frames
}

// arrived polls until n frames came, and returns the first byte of each payload.
func arrived(t *testing.T, l *Link, n int) (got []byte) {
	t.Helper()
	in := make([]transport.Frame, 16)
	for end := time.Now().Add(20 * time.Second); len(got) < n; {
		k, err := l.Poll(in)
		if err != nil || time.Now().After(end) {
			t.Fatalf("%d of %d frames came: %v", len(got), n, err)
		}
		for _, f := range in[:k] {
			got = append(got, f.Payload[0])
		}
	}
	return got
}

// full returns a descriptor that answers as a NIC without room does: EAGAIN.
func full(t *testing.T) int {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(unix.Close(fds[0]), unix.Close(fds[1])) })
	for err == nil {
		err = unix.Send(fds[0], nil, unix.MSG_DONTWAIT)
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	return fds[0]
}

// What a full NIC has not taken waits in the ring, and Send is busy meanwhile. Then the frames leave
// with the next Poll, Wait or Send, in order.
func TestSend_NICIsFull(t *testing.T) {
	for _, c := range []struct {
		name string
		try  func(a *Link) error // again, once there is room
	}{
		{"Poll", func(a *Link) error { _, err := a.Poll(nil); return err }},
		{"Wait", func(a *Link) error { return ignoreDeadline(a.Wait) }},
		{"Send", func(a *Link) error { _, err := a.Send(nil); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, a, b := ends(t)
			frames := numbered(b, 4)
			socket := a.sender.replace(full(t))
			if n, err := a.Send(frames[:3]); n != 3 || err != nil {
				t.Errorf("Send: %d, %v; want 3 taken", n, err)
			}
			for range 2 {
				if n, err := a.Send(frames[3:]); n != 0 || !errors.Is(err, transport.ErrBusy) {
					t.Errorf("Send while the NIC is full: %d, %v; want ErrBusy", n, err)
				}
				if n, err := a.Poll(make([]transport.Frame, 1)); n != 0 || err != nil {
					t.Errorf("Poll: %d, %v", n, err)
				}
			}
			if n := len(b.door.queues[0].taken); n != 0 || b.Counters().RxFrames != 0 {
				t.Fatal("frames came though the NIC was full")
			}
			a.sender.replace(socket)
			if err := c.try(a); err != nil {
				t.Fatal(err)
			}
			if got := arrived(t, b, 3); !bytes.Equal(got, []byte{1, 2, 3}) {
				t.Errorf("frames %v came", got)
			}
			if n, err := a.Send(frames[3:]); n != 1 || err != nil {
				t.Errorf("Send when there is room: %d, %v", n, err)
			}
			if got := arrived(t, b, 1); got[0] != 4 {
				t.Errorf("frame %d came", got[0])
			}
			if k := a.Counters(); k.TxFrames != 4 || k.TxBusy != 2 || k.TxRefused != 0 {
				t.Errorf("%+v", k)
			}
		})
	}
}

// What a wake-up of a zero-copy NIC has left in the ring leaves with the next Poll or Wait, if the NIC
// sleeps: Send takes more meanwhile.
func TestSend_NICSleepsOn(t *testing.T) {
	for _, c := range []struct {
		name string
		try  func(a *Link) error // again
	}{
		{"Poll", func(a *Link) error { _, err := a.Poll(nil); return err }},
		{"Wait", func(a *Link) error { return ignoreDeadline(a.Wait) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, a, b := ends(t)
			a.sender.zeroCopy = true
			frames := numbered(b, 3)
			socket := a.sender.replace(full(t))
			for k := range frames {
				if n, err := a.Send(frames[k : k+1]); n != 1 || err != nil {
					t.Errorf("Send %d: %d, %v", k, n, err)
				}
			}
			if n, err := a.Poll(nil); n != 0 || err != nil || !a.sender.retry() {
				t.Errorf("Poll: %d, %v; or the NIC does not sleep any more", n, err)
			}
			if b.Counters().RxFrames != 0 {
				t.Fatal("frames came though the NIC was not woken")
			}
			a.sender.replace(socket)
			if err := c.try(a); err != nil {
				t.Fatal(err)
			}
			if got := arrived(t, b, 3); !bytes.Equal(got, []byte{1, 2, 3}) {
				t.Errorf("frames %v came", got)
			}
			if a.sender.pending() {
				t.Error("who polls tries again, and nothing is left")
			}
			if k := a.Counters(); k.TxFrames != 3 || k.TxBusy != 0 || k.TxRefused != 0 {
				t.Errorf("%+v", k)
			}
		})
	}
}

// A zero-copy NIC that has taken all by itself is not woken again.
func TestPoll_NICHasTakenAll(t *testing.T) {
	_, a, b := ends(t)
	if _, err := a.Send(numbered(b, 1)); err != nil {
		t.Fatal(err)
	}
	a.sender.zeroCopy = true
	a.sender.left.Store(true) // as it was before
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	socket := a.sender.replace(fds[0])
	if full := a.sender.retry(); full || a.sender.pending() {
		t.Errorf("full: %t, still pending: %t", full, a.sender.pending())
	}
	a.sender.replace(socket)
	if _, _, err := unix.Recvfrom(fds[1], make([]byte, 1), 0); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%v: it was woken", err)
	}
	if err := errors.Join(unix.Close(fds[0]), unix.Close(fds[1])); err != nil {
		t.Error(err)
	}
}

// A Wait that sleeps already when Send finds the NIC full, or cannot wake it, ends, as somebody has to
// try again.
func TestWait_NICIsFull(t *testing.T) {
	for name, zeroCopy := range map[string]bool{"copies": false, "zero-copy": true} {
		t.Run(name, func(t *testing.T) { waitWhileFull(t, zeroCopy) })
	}
}

func waitWhileFull(t *testing.T, zeroCopy bool) {
	_, a, b := ends(t)
	a.sender.zeroCopy = zeroCopy
	nic := full(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- a.Wait(ctx) }()
	for range 1000 {
		runtime.Gosched() // most likely it sleeps after this; it must be right either way
	}
	socket := a.sender.replace(nic)
	defer a.sender.replace(socket)
	if _, err := a.Send(numbered(b, 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Wait sleeps on: %v", err)
	}
}

// ignoreDeadline waits for a moment.
func ignoreDeadline(wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// What Send refuses while the interface is down does not leave late, when it is up again, and takes
// no memory: as many frames as there are chunks go afterwards. A NIC that reads the frames' memory
// itself is asked in another way, with the same end.
func TestSend_WhileDown(t *testing.T) {
	for name, zeroCopy := range map[string]bool{"copies": false, "zero-copy": true} {
		t.Run(name, func(t *testing.T) { sendWhileDown(t, zeroCopy) })
	}
}

func sendWhileDown(t *testing.T, zeroCopy bool) {
	bed, a, b := ends(t)
	a.sender.zeroCopy = zeroCopy
	if err := bed.Node(0).SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	stale := numbered(b, 40)
	for i := range 2 * sendFrames / len(stale) {
		if n, err := a.Send(stale); n != 0 || !errors.Is(err, transport.ErrInterfaceDown) {
			t.Fatalf("Send %d on an interface that is down: %d, %v", i, n, err)
		}
	}
	if c := a.Counters(); c.TxFrames != 0 || c.TxBytes != 0 || c.TxRefused != uint64(2*sendFrames/len(stale)) {
		t.Errorf("%+v", c)
	}
	if err := bed.Node(0).SetUp(0, true); err != nil {
		t.Fatal(err)
	}
	fresh := numbered(b, 1)
	fresh[0].Payload[0] = 0xff
	// The carrier comes back a moment later, and what is sent before is lost.
	in := make([]transport.Frame, 16)
	for end := time.Now().Add(20 * time.Second); ; {
		if _, err := a.Send(fresh); err != nil && !errors.Is(err, transport.ErrBusy) {
			t.Fatal(err)
		}
		n, err := b.Poll(in)
		if err != nil || time.Now().After(end) {
			t.Fatalf("nothing comes: %v", err)
		}
		for _, f := range in[:n] {
			if f.Payload[0] != 0xff {
				t.Fatalf("frame %d came, which Send had refused", f.Payload[0])
			}
		}
		if n > 0 {
			break
		}
	}
	for n := 1; n > 0; {
		n, _ = b.Poll(in)
	}
	for range 2 * sendFrames {
		if _, err := a.Send(fresh); err != nil && !errors.Is(err, transport.ErrBusy) {
			t.Fatal(err)
		}
		if _, err := b.Poll(in); err != nil {
			t.Fatal(err)
		}
	}
	a.sender.mu.Lock()
	a.sender.reap()
	free := slices.Compact(slices.Sorted(slices.Values(a.sender.free)))
	a.sender.mu.Unlock()
	if len(free) != sendFrames || free[0] != 0 || free[sendFrames-1] != sendFrames-1 {
		t.Errorf("%d of %d chunks are free", len(free), sendFrames)
	}
	for _, addr := range []uint64{void.Addr, a.sender.socket.ToSend(0), a.sender.socket.ToSend(0) + 1, 0} {
		if a.sender.giveBack(addr) {
			t.Errorf("the chunk at %d was given back, which was not under way", addr)
		}
	}
}

// replace gives the sender another socket, and returns the one that it had.
func (s *sender) replace(fd int) (old int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.socket.FD = s.socket.FD, fd
	return old
}

// A NIC that reads the frames' memory itself may have some of an earlier Send before it when the
// interface goes down: they were taken, and are lost, and the frames of the next Send are refused.
func TestSend_GoesDownWithFramesInTheRing(t *testing.T) {
	bed, a, b := ends(t)
	a.sender.zeroCopy = true
	frames := numbered(b, 4)
	socket := a.sender.replace(full(t))
	if n, err := a.Send(frames[:3]); n != 3 || err != nil {
		t.Errorf("Send: %d, %v; want 3 taken", n, err)
	}
	a.sender.replace(socket)
	if err := bed.Node(0).SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Send(frames[3:]); n != 0 || !errors.Is(err, transport.ErrInterfaceDown) {
		t.Errorf("Send on an interface that is down: %d, %v", n, err)
	}
	if c := a.Counters(); c.TxFrames != 3 || c.TxRefused != 1 {
		t.Errorf("%+v", c)
	}
}

// Frames that waited for a full NIC when the interface goes down are lost, whoever has the kernel try
// again: they were taken, and must not leave late, when it is up.
func TestGoesDown_WhileFramesWait(t *testing.T) {
	for _, c := range []struct {
		name string
		try  func(a *Link) error // while it is down
		want error
	}{
		{"Poll", func(a *Link) error { _, err := a.Poll(nil); return err }, nil},
		{"Wait", func(a *Link) error { _ = ignoreDeadline(a.Wait); return nil }, nil}, // Send may have ended it
		{"Send", func(a *Link) error { _, err := a.Send(nil); return err }, transport.ErrInterfaceDown},
	} {
		t.Run(c.name, func(t *testing.T) {
			bed, a, b := ends(t)
			frames := numbered(b, 4)
			socket := a.sender.replace(full(t))
			if n, err := a.Send(frames[:3]); n != 3 || err != nil {
				t.Errorf("Send: %d, %v; want 3 taken", n, err)
			}
			a.sender.replace(socket)
			if err := bed.Node(0).SetUp(0, false); err != nil {
				t.Fatal(err)
			}
			if err := c.try(a); !errors.Is(err, c.want) {
				t.Errorf("while it is down: %v, want %v", err, c.want)
			}
			a.sender.mu.Lock()
			free := len(a.sender.free)
			a.sender.mu.Unlock()
			if free != sendFrames {
				t.Errorf("%d of %d chunks are free: frames wait for the interface", free, sendFrames)
			}
		})
	}
}

// A NIC that was down, and now looks at the ring by itself, is sent frames again.
func TestSend_NICNeedsNoWakeup(t *testing.T) {
	bed, a, b := ends(t)
	a.sender.zeroCopy = true
	frames := numbered(b, 1)
	if err := bed.Node(0).SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Send(frames); n != 0 || !errors.Is(err, transport.ErrInterfaceDown) {
		t.Fatalf("Send on an interface that is down: %d, %v", n, err)
	}
	if err := bed.Node(0).SetUp(0, true); err != nil {
		t.Fatal(err)
	}
	fd := a.sender.socket.FD
	var at unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(at))
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		t.Fatal(e)
	}
	ring, err := unix.Mmap(fd, unix.XDP_PGOFF_TX_RING, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(ring) }()
	*(*uint32)(unsafe.Pointer(&ring[at.Tx.Flags])) = 0 // as the driver writes it
	if n, err := a.Send(frames); n != 1 || err != nil || a.sender.waiting.Load() {
		t.Errorf("Send once it is up: %d, %v; waiting: %v", n, err, a.sender.waiting.Load())
	}
}

// A link of which no frame was seen leaves no memory behind, nor does a failed Open or a Probe.
func TestClose_LeavesNoMemory(t *testing.T) {
	bed, _, _ := ends(t)
	left := func() (n int) {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(maps)) {
			var from, to uint64
			if _, err := fmt.Sscanf(line, "%x-%x r--p 00000000 00:00 0", &from, &to); err == nil &&
				strings.Contains(line, " r--p 00000000 00:00 0") {
				n += int(to - from)
			}
		}
		return n
	}
	elsewhere := testbed.ForTest(t, testbed.Config{}).Node(0)
	before := left()
	for range 3 {
		_ = bed.Node(0).Do(func() error { _, err := Open("eth0", Config{}); return err }) // it is occupied
		err := elsewhere.Do(func() error {
			_, err := Probe("eth0")
			if err != nil {
				return err
			}
			l, err := Open("eth0", Config{})
			if err != nil {
				return err
			}
			return l.Close()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if after := left(); after > before {
		t.Errorf("%d bytes of addresses before, %d after", before, after)
	}
}

// The packet socket of the link stamps none of its frames, and the link does not say that it does.
func TestStampFrames_NotSupported(t *testing.T) {
	_, a, _ := ends(t)
	if err := a.StampFrames(true); !errors.Is(err, transport.ErrNotSupported) {
		t.Errorf("%v, want ErrNotSupported", err)
	}
	if _, ok := transport.As[transport.Stamper](a); ok {
		t.Error("the link says that it stamps frames")
	}
}
