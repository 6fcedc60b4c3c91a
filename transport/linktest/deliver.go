package linktest

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// Addresses that belong to neither end of a pair.
var (
	group      = transport.MAC{0x03, 0x72, 0x6c, 0, 0, 1}
	otherGroup = transport.MAC{0x03, 0x72, 0x6c, 0, 0, 2}
	stranger   = transport.MAC{0x02, 0x72, 0x6c, 0xff, 0xff, 0xfe}
)

func unicast(t *testing.T, a, b transport.Link) {
	delivers(t, a, b, numbered(b.MAC(), 0))
	delivers(t, b, a, numbered(a.MAC(), 1))
	delivers(t, a, b, numbered(b.MAC(), 2))
}

// answer: a frame may say which received one it answers. Who gets it does not see that.
func answer(t *testing.T, a, b transport.Link) {
	send(t, a, numbered(b.MAC(), 0))
	received := receive(t, b, 1)
	f := numbered(a.MAC(), 1)
	f.Answers = &received[0]
	delivers(t, b, a, f)
}

func broadcast(t *testing.T, a, b transport.Link) {
	delivers(t, a, b, numbered(transport.Broadcast, 1))
}

func multicastJoined(t *testing.T, a, b transport.Link) {
	mustJoin(t, b, group)
	delivers(t, a, b, numbered(group, 1))
}

// multicastNotJoined asks links that filter groups only: the others promise to receive them all.
func multicastNotJoined(t *testing.T, a, b transport.Link) {
	if _, ok := transport.As[transport.Joiner](b); ok {
		mustJoin(t, b, otherGroup)
		withholds(t, a, b, numbered(group, 1))
	}
}

func mustJoin(t *testing.T, l transport.Link, group transport.MAC) {
	t.Helper()
	if err := transport.Join(l, group); err != nil {
		t.Fatalf("Join: %v", err)
	}
}

func joinsCounted(t *testing.T, a, b transport.Link) {
	j, ok := transport.As[transport.Joiner](b)
	if !ok {
		return
	}
	mustJoin(t, b, group)
	mustJoin(t, b, group)
	for left, want := range []int{1, 1, 0} { // frames received after so many calls of Leave
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
	mustJoin(t, a, group)
	send(t, a, numbered(transport.Broadcast, 1), numbered(group, 2), numbered(a.MAC(), 3), numbered(b.MAC(), mark))
	receiveMark(t, b) // now all of them have been through the segment
	withholds(t, b, a)
}

func otherUnicast(t *testing.T, a, b transport.Link) {
	withholds(t, a, b, numbered(stranger, 1))
}

// sourceAddress: a frame's Src is sent as it is; only the zero MAC means the link's own address.
func sourceAddress(t *testing.T, a, b transport.Link) {
	f := numbered(b.MAC(), 1)
	f.Src = stranger
	delivers(t, a, b, f)
}

// tags: VID, PCP and DEI arrive as they were sent, for unicast and broadcast.
func tags(t *testing.T, a, b transport.Link) {
	deliversTags(t, a, b,
		transport.Tagged(transport.Tag{VID: 1}),
		transport.Tagged(transport.Tag{VID: 1, PCP: 7}),
		transport.Tagged(transport.Tag{VID: 100, PCP: 5}),
		transport.Tagged(transport.Tag{VID: 101, PCP: 2, DEI: true}),
		transport.Tagged(transport.Tag{VID: 2048, DEI: true}),
		transport.Tagged(transport.Tag{VID: transport.MaxVID, PCP: 7, DEI: true}))
}

// priorityTag: a tag with VID 0 is a tag, even with priority 0, and no tag is none.
func priorityTag(t *testing.T, a, b transport.Link) {
	deliversTags(t, a, b,
		transport.Untagged,
		transport.Tagged(transport.Tag{}),
		transport.Untagged,
		transport.Tagged(transport.Tag{PCP: 7}),
		transport.Tagged(transport.Tag{PCP: 3, DEI: true}),
		transport.Untagged)
}

func deliversTags(t *testing.T, a, b transport.Link, tags ...transport.OptionalTag) {
	t.Helper()
	for i, tag := range tags {
		for _, dst := range []transport.MAC{b.MAC(), transport.Broadcast} {
			f := numbered(dst, uint64(i))
			f.OptionalTag = tag
			delivers(t, a, b, f)
		}
	}
}

func badTags(t *testing.T, a, b transport.Link) {
	for _, tag := range []transport.Tag{{VID: transport.MaxVID + 1}, {VID: 0x1001}, {VID: 1, PCP: 8}} {
		f := numbered(b.MAC(), 1)
		f.OptionalTag = transport.Tagged(tag)
		if n, err := a.Send([]transport.Frame{f}); n != 0 || !errors.Is(err, transport.ErrBadTag) {
			t.Errorf("Send with %v: n=%d, %v; want 0, ErrBadTag", tag, n, err)
		}
	}
	withholds(t, a, b)
}
