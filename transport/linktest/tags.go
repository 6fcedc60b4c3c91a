package linktest

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// tags: VID, PCP and DEI arrive as they were sent, for unicast and broadcast.
func tags(t *testing.T, a, b transport.Link) {
	for i, tag := range []transport.Tag{
		{VID: 1},
		{VID: 1, PCP: 7},
		{VID: 100, PCP: 5},
		{VID: 101, PCP: 2, DEI: true},
		{VID: 2048, DEI: true},
		{VID: transport.MaxVID, PCP: 7, DEI: true},
	} {
		for _, dst := range []transport.MAC{b.MAC(), transport.Broadcast} {
			f := numbered(dst, uint64(i))
			f.Tagged, f.Tag = true, tag
			send(t, a, f)
			wantFrame(t, receive(t, b, 1)[0], f, a.MAC())
		}
	}
}

// priorityTag: a tag with VID 0 is a tag, also when its priority is 0; and no tag is none.
func priorityTag(t *testing.T, a, b transport.Link) {
	for i, c := range []struct {
		tagged bool
		tag    transport.Tag
	}{
		{false, transport.Tag{}},
		{true, transport.Tag{}},
		{false, transport.Tag{}},
		{true, transport.Tag{PCP: 7}},
		{true, transport.Tag{PCP: 3, DEI: true}},
		{false, transport.Tag{}},
	} {
		f := numbered(b.MAC(), uint64(i))
		f.Tagged, f.Tag = c.tagged, c.tag
		send(t, a, f)
		wantFrame(t, receive(t, b, 1)[0], f, a.MAC())
	}
}

func badTags(t *testing.T, a, b transport.Link) {
	for _, tag := range []transport.Tag{{VID: transport.MaxVID + 1}, {VID: 0x1001}, {VID: 1, PCP: 8}} {
		f := numbered(b.MAC(), 1)
		f.Tagged, f.Tag = true, tag
		if n, err := a.Send([]transport.Frame{f}); n != 0 || !errors.Is(err, transport.ErrBadTag) {
			t.Errorf("Send with %v: n=%d, %v; want 0, ErrBadTag", tag, n, err)
		}
	}
	send(t, a, numbered(b.MAC(), mark))
	if got := receiveMark(t, b); len(got) != 0 {
		t.Errorf("a frame with a bad tag arrived as %v", got[0].Tag)
	}
}
