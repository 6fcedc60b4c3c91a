package linktest

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// Addresses that belong to neither end of a pair.
var (
	group    = transport.MAC{0x03, 0x72, 0x6c, 0, 0, 1}
	stranger = transport.MAC{0x02, 0x72, 0x6c, 0xff, 0xff, 0xfe}
)

// mark is the number of the frame that ends a wait for frames which must not come.
const mark = 1 << 40

func unicast(t *testing.T, a, b transport.Link) {
	for i, dir := range [][2]transport.Link{{a, b}, {b, a}, {a, b}} {
		from, to := dir[0], dir[1]
		f := numbered(to.MAC(), uint64(i))
		send(t, from, f)
		wantFrame(t, receive(t, to, 1)[0], f, from.MAC())
	}
}

func broadcast(t *testing.T, a, b transport.Link) {
	f := numbered(transport.Broadcast, 1)
	send(t, a, f)
	wantFrame(t, receive(t, b, 1)[0], f, a.MAC())
}

func multicastJoined(t *testing.T, a, b transport.Link) {
	if err := transport.Join(b, group); err != nil {
		t.Fatalf("Join: %v", err)
	}
	f := numbered(group, 1)
	send(t, a, f)
	wantFrame(t, receive(t, b, 1)[0], f, a.MAC())
}

func multicastNotJoined(t *testing.T, a, b transport.Link) {
	if _, ok := transport.As[transport.Joiner](b); !ok {
		return // it promises to receive all groups
	}
	other := group
	other[5]++
	if err := transport.Join(b, other); err != nil {
		t.Fatalf("Join: %v", err)
	}
	send(t, a, numbered(group, 1), numbered(b.MAC(), mark))
	if got := receiveMark(t, b); len(got) != 0 {
		t.Errorf("received a frame for %v, a group that was not joined", got[0].Dst)
	}
}

func joinsCounted(t *testing.T, a, b transport.Link) {
	j, ok := transport.As[transport.Joiner](b)
	if !ok {
		return
	}
	for range 2 {
		if err := j.Join(group); err != nil {
			t.Fatalf("Join: %v", err)
		}
	}
	for left, want := range []int{1, 1, 0} { // received after so many calls of Leave
		if left > 0 {
			if err := j.Leave(group); err != nil {
				t.Fatalf("Leave, call %d: %v", left, err)
			}
		}
		send(t, a, numbered(group, 1), numbered(b.MAC(), mark))
		if got := receiveMark(t, b); len(got) != want {
			t.Errorf("joined twice, left %d times: %d frames came, want %d", left, len(got), want)
		}
	}
}

func ownFrames(t *testing.T, a, b transport.Link) {
	if err := transport.Join(a, group); err != nil {
		t.Fatalf("Join: %v", err)
	}
	send(t, a, numbered(transport.Broadcast, 1), numbered(group, 2), numbered(a.MAC(), 3), numbered(b.MAC(), mark))
	receiveMark(t, b) // so all of it has been through the segment
	send(t, b, numbered(a.MAC(), mark))
	if got := receiveMark(t, a); len(got) != 0 {
		t.Errorf("received own frames %v", seeds(got))
	}
}

func otherUnicast(t *testing.T, a, b transport.Link) {
	send(t, a, numbered(stranger, 1), numbered(b.MAC(), mark))
	if got := receiveMark(t, b); len(got) != 0 {
		t.Errorf("received a frame for %v, own address is %v", got[0].Dst, b.MAC())
	}
}

// sourceAddress: a frame's Src is sent as it is; only the zero MAC stands for the link's own.
func sourceAddress(t *testing.T, a, b transport.Link) {
	f := numbered(b.MAC(), 1)
	f.Src = stranger
	send(t, a, f)
	wantFrame(t, receive(t, b, 1)[0], f, stranger)
}
