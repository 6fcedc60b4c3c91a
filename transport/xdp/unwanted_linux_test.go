package xdp

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// small opens links on a bed of two: b has memory for as many frames as slots says.
func small(t *testing.T, slots int) (a, b *Link) {
	t.Helper()
	testbed.NeedXDP(t, func(ifname string) error { _, err := Probe(ifname); return err })
	bed := testbed.ForTest(t, testbed.Config{})
	open := func(node, slots int) *Link {
		l, err := testbed.In(bed.Node(node), func() (*Link, error) { return Open("eth0", Config{Slots: slots}) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	return open(0, 0), open(1, slots)
}

// Frames for groups that were not joined take no memory from those that are wanted: it goes back to
// the kernel though no frame is handed out.
func TestPoll_UnwantedFramesTakeNoMemory(t *testing.T) {
	const slots = 4
	a, b := small(t, slots)
	group := transport.MAC{3, 0, 0, 0, 0, 1}
	unwanted := transport.Frame{Dst: group, EtherType: transport.EtherTypeDefault}
	in := make([]transport.Frame, 8)
	end := time.Now().Add(20 * time.Second)
	for range 3 * slots {
		before := b.door.queues[0].socket.Received.Ready()
		if _, err := a.Send([]transport.Frame{unwanted}); err != nil {
			t.Fatal(err)
		}
		for b.door.queues[0].socket.Received.Ready() == before {
			if time.Now().After(end) {
				t.Fatal("a frame has no memory to arrive in")
			}
			runtime.Gosched()
		}
		if n, err := b.Poll(in); n != 0 || err != nil {
			t.Fatalf("%d frames of a group that was not joined: %v", n, err)
		}
	}
	if _, err := a.Send(numbered(b, 1)); err != nil {
		t.Fatal(err)
	}
	if got := arrived(t, b, 1); !bytes.Equal(got, []byte{1}) {
		t.Errorf("frames %v came", got)
	}
}

// A descriptor of memory that is not the link's is no frame, and gives the kernel no memory.
func TestPoll_DescriptorsOfOtherMemory(t *testing.T) {
	const slots, sent = 2, 6
	a, big := small(t, 64)
	_, l := small(t, slots)
	if _, err := a.Send(numbered(big, sent)); err != nil {
		t.Fatal(err)
	}
	theirs := &big.door.queues[0].socket.Received
	for end := time.Now().Add(20 * time.Second); theirs.Ready() < sent; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d of %d frames came", theirs.Ready(), sent)
		}
	}
	q := &l.door.queues[0]
	room := q.socket.Fill.Room()
	own := q.socket.Received
	q.socket.Received = *theirs // of which the first ones alone name memory that the link has
	n, err := l.Poll(make([]transport.Frame, sent))
	q.socket.Received = own
	if n != slots || err != nil || len(q.taken) != slots {
		t.Errorf("Poll: %d frames, %v; %d chunks are to go back; want %d", n, err, len(q.taken), slots)
	}
	if c := l.Counters(); c.RxMalformed != 0 || q.socket.Fill.Room() != room {
		t.Errorf("%+v; the kernel was given memory: room for %d, was %d", c, q.socket.Fill.Room(), room)
	}
}
