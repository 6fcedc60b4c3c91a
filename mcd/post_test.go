package mcd_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// gate is a link that has room for so many frames only.
type gate struct {
	transport.Link
	mu   sync.Mutex
	room int
}

func (g *gate) Unwrap() transport.Link { return g.Link }

func (g *gate) allow(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room = n
}

func (g *gate) Send(frames []transport.Frame) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, err := g.Link.Send(frames[:min(len(frames), g.room)])
	g.room -= n
	if err == nil && n < len(frames) {
		err = transport.ErrBusy
	}
	return n, err
}

// gated opens nodes 0 and 1, and the gate through which node 0 sends.
func gated(t *testing.T, room int) (*gate, *mcd.Endpoint, *mcd.Endpoint) {
	g := &gate{room: room}
	es := mcdtest.Open(t, 2, mcdtest.Config{Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
		if node != 0 {
			return l
		}
		g.Link = l
		return g
	}})
	return g, es[0], es[1]
}

func TestMCD_2_2_PostedDescriptorsWaitForRoomInOrder(t *testing.T) {
	g, e0, e1 := gated(t, 2)
	p0, p1 := port(t, e0, 1), port(t, e1, 1)
	ds := make([]*mcd.SendDesc, 40) // more than a batch
	for i := range ds {
		ds[i] = &mcd.SendDesc{To: mcd.To(p1.Addr()), Payload: []byte{byte(i)}}
	}
	if err := p0.PostSend(ds...); err != nil {
		t.Fatal(err)
	}
	if !ds[1].Done() || ds[2].Done() {
		t.Error("want exactly those done for which there was room")
	}
	if err := p0.PostSend(ds[2]); !errors.Is(err, mcd.ErrPosted) {
		t.Errorf("posted twice: %v, want ErrPosted", err)
	}
	if err := p0.TrySend(0, mcd.To(p1.Addr()), nil); !errors.Is(err, transport.ErrBusy) {
		t.Errorf("TrySend past waiting descriptors: %v, want ErrBusy", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p0.Send(ctx, p1.Addr(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Send without room: %v, want the context's error", err)
	}
	g.allow(1000)
	for i := range ds {
		if err := ds[i].Wait(limit(t)); err != nil {
			t.Fatalf("descriptor %d: %v", i, err)
		}
		expect(t, p1, p0.Addr(), string([]byte{byte(i)}))
	}
}

func TestCloseFailsWhatWaits(t *testing.T) {
	_, e0, e1 := gated(t, 0)
	p0 := port(t, e0, 1)
	d := &mcd.SendDesc{To: mcd.To(mcd.Addr{Node: e1.Node(), Port: 1})}
	if err := p0.PostSend(d); err != nil {
		t.Fatal(err)
	}
	if err := e0.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(limit(t)); !errors.Is(err, mcd.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// switching is a router whose VID changes.
type switching struct {
	mu  sync.Mutex
	vid transport.VID
}

func (s *switching) Route(transport.MAC) transport.OptionalTag {
	s.mu.Lock()
	defer s.mu.Unlock()
	return transport.OptionalTag{Tagged: s.vid != 0, Tag: transport.Tag{VID: s.vid, PCP: 3}}
}

func (s *switching) set(vid transport.VID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vid = vid
}

var _ vlan.Router = (*switching)(nil)

// The tag follows the router at once, to nodes and to groups, and the receiver is told of it.
func TestTagsFollowTheRouter(t *testing.T) {
	r := &switching{}
	es := open(t, 2, 1, func(c *mcd.Config) { c.Router = r })
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	for _, vid := range []transport.VID{0, 101, 102, 4095, 7} {
		r.set(vid)
		want := vid
		if vid == 4095 {
			want = 102 // no frame can carry it: the route before it stays
		}
		d := &mcd.RecvDesc{Buf: make([]byte, 8)}
		if err := p1.PostRecv(d); err != nil {
			t.Fatal(err)
		}
		send(t, p0, p1.Addr(), nil)
		if err := d.Wait(limit(t)); err != nil || d.Tagged != (want != 0) || d.Tag.VID != want {
			t.Errorf("after VID %d: tagged %v, %v (%v)", vid, d.Tagged, d.Tag, err)
		}
	}
}

func TestTrySendInPlace(t *testing.T) {
	es := open(t, 2, 1)
	a, b := port(t, es[0], 1), port(t, es[1], 1)
	message := append(make([]byte, es[0].Headroom()), "in place"...)
	for range 2 { // the message is as it was
		if n, err := a.TrySendInPlace(0, mcd.To(b.Addr()), message); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		buf := make([]byte, 100)
		n, from, err := b.Recv(limit(t), buf)
		if err != nil || from != a.Addr() || string(buf[:n]) != "in place" {
			t.Errorf("%q from %v, %v", buf[:n], from, err)
		}
	}
	large := make([]byte, es[0].Headroom()+es[0].MaxPayload()+1)
	if n, err := a.TrySendInPlace(0, mcd.To(b.Addr()), message, message, large, message); n != 2 || !errors.Is(err, mcd.ErrTooLarge) {
		t.Errorf("the third is too large: %d were sent, %v", n, err)
	}
}

// What was sent is counted by destination and VID, in whatever way it was sent.
func TestSentFramesAreCountedByRoute(t *testing.T) {
	r, err := vlan.NewTable([]vlan.Route{{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 1})}})
	if err != nil {
		t.Fatal(err)
	}
	es := open(t, 2, 1, func(c *mcd.Config) {
		if c.Node == 0 {
			c.Router = r
		}
	})
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	peer := es[1].MAC(0)
	for _, vid := range []transport.VID{2, 3, 2} {
		if err := r.Set(vlan.Route{Dst: peer, OptionalTag: transport.Tagged(transport.Tag{VID: vid})}); err != nil {
			t.Fatal(err)
		}
		send(t, p0, p1.Addr(), make([]byte, 100))
		d := &mcd.SendDesc{To: mcd.To(p1.Addr()), Payload: make([]byte, 50)}
		if err := p0.PostSend(d); err != nil {
			t.Fatal(err)
		}
		if n, err := p0.TrySendInPlace(0, mcd.To(p1.Addr()), make([]byte, es[0].Headroom()+7), make([]byte, es[0].Headroom())); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if err := p0.Broadcast(limit(t), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	const each = transport.MaxHeaderLen + mcd.HeaderLen
	want := []vlan.Sent{
		{Dst: peer, VID: 2, Frames: 8, Bytes: 2 * (4*each + 157)},
		{Dst: peer, VID: 3, Frames: 4, Bytes: 4*each + 157},
		{Dst: transport.Broadcast, VID: 1, Frames: 3, Bytes: 3 * each},
	}
	if is := r.Counts(); !slices.Equal(is, want) {
		t.Errorf("counted %+v,\nwant %+v", is, want)
	}
}
