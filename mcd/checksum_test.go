package mcd_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
)

// exact is a link that says that it hands out what was sent.
type exact struct {
	transport.Link
	is      bool
	altered *atomic.Bool // of all that reach each other
}

func (l exact) Exact() bool   { return l.is }
func (l exact) Alters()       { l.altered.Store(true) }
func (l exact) Altered() bool { return l.altered.Load() }

// around is a link around another one.
type around struct{ transport.Link }

func (a around) Unwrap() transport.Link { return a.Link }

// What the checksum of a message covers is as the sender's configuration says, or as its link does.
func TestChecksum_Coverage(t *testing.T) {
	bare := func(l transport.Link) transport.Link { return l }
	memory := func(l transport.Link) transport.Link { return exact{l, true, new(atomic.Bool)} }
	for _, c := range []struct {
		name string
		cfg  mcd.Config
		link func(transport.Link) transport.Link
		want mcd.Checksum
	}{
		{"auto, on a wire", mcd.Config{}, bare, mcd.ChecksumPayload},
		{"auto, in memory", mcd.Config{}, memory, mcd.ChecksumHeader},
		{"auto, in memory and by a wire", mcd.Config{},
			func(l transport.Link) transport.Link { return exact{l, false, new(atomic.Bool)} }, mcd.ChecksumPayload},
		{"auto, in memory behind a wrapper", mcd.Config{},
			func(l transport.Link) transport.Link { return around{exact{l, true, new(atomic.Bool)}} }, mcd.ChecksumPayload},
		{"payload, in memory", mcd.Config{Checksum: mcd.ChecksumPayload}, memory, mcd.ChecksumPayload},
		{"header, on a wire", mcd.Config{Checksum: mcd.ChecksumHeader}, bare, mcd.ChecksumHeader},
		{"header, with keys", mcd.Config{Checksum: mcd.ChecksumHeader, Keys: keyring.New()}, bare, mcd.ChecksumPayload},
	} {
		t.Run(c.name, func(t *testing.T) {
			links := switched(t, 2)
			defer func() { _ = links[0].Close() }()
			c.cfg.Cluster, c.cfg.Node = cluster, 1
			c.cfg.Nodes = []mcd.Node{{ID: 0, MACs: []transport.MAC{links[0].MAC()}}}
			e, err := mcd.Open(c.cfg, c.link(links[1]))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close() }()
			if got := e.Checksum(0); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if c.cfg.Keys != nil {
				return // what is sent has a tag
			}
			send(t, port(t, e, 9), mcd.Addr{Node: 0, Port: 9}, []byte("payload"))
			var got [1]transport.Frame
			for n := 0; n == 0; {
				if n, err = links[0].Poll(got[:]); err != nil {
					t.Fatal(err)
				}
			}
			want := message(func(h *wire.Header) {
				h.From, h.To, h.SrcPort, h.HeaderOnly = 1, 0, 9, c.want == mcd.ChecksumHeader
			}, "payload")
			if !bytes.HasPrefix(got[0].Payload, want) { // padding follows
				t.Errorf("sent %x, want %x", got[0].Payload, want)
			}
		})
	}
}

// A receiver goes by what each frame says: of one whose payload is left to the link, only a change of
// the header is noticed.
func TestChecksum_TheSenderSays(t *testing.T) {
	s := newRawSetup(t)
	p := port(t, s.e, 9)
	for _, c := range []struct {
		headerOnly bool
		at         int
		dropped    bool
	}{
		{false, 2, true}, {false, wire.HeaderLen, true}, {true, 2, true}, {true, 1, true}, {true, wire.HeaderLen, false},
	} {
		b := message(func(h *wire.Header) { h.HeaderOnly = c.headerOnly }, "payload")
		b[c.at] ^= wire.FlagHeaderOnly
		before := s.e.Counters().DropChecksum
		s.inject(t, transport.EtherTypeDefault, b)
		if dropped := s.e.Counters().DropChecksum != before; dropped != c.dropped {
			t.Errorf("header only %v, byte %d changed: dropped %v, want %v", c.headerOnly, c.at, dropped, c.dropped)
		}
		if !c.dropped {
			expect(t, p, mcd.Addr{}, "rayload")
		}
	}
}

func TestChecksum_Text(t *testing.T) {
	for _, want := range []mcd.Checksum{mcd.ChecksumAuto, mcd.ChecksumPayload, mcd.ChecksumHeader} {
		text, err := want.MarshalText()
		var got mcd.Checksum
		if err == nil {
			err = got.UnmarshalText(text)
		}
		if got != want || err != nil {
			t.Errorf("%s is %v, %v, want %v", text, got, err, want)
		}
	}
	var c mcd.Checksum
	if err := c.UnmarshalText([]byte("none")); err == nil || err.Error() != `checksum "none": want auto, payload, header` {
		t.Error(err)
	}
	const refused = "open endpoint: Config.Checksum 3: want ChecksumAuto, ChecksumPayload or ChecksumHeader"
	links := switched(t, 1)
	defer func() { _ = links[0].Close() }()
	if _, err := mcd.Open(mcd.Config{Checksum: 3}, links...); fmt.Sprint(err) != refused {
		t.Errorf("%v, want %s", err, refused)
	}
}

// One that receives through a wrapper, which may alter what memory does not, has the others cover
// payloads, whatever they have chosen, and drops what came before they knew; not if it leaves
// payloads to the link itself.
func TestChecksum_TheReceiverWantsMore(t *testing.T) {
	for _, c := range []struct {
		receives, sends mcd.Checksum
		want            mcd.Checksum
	}{
		{mcd.ChecksumAuto, mcd.ChecksumAuto, mcd.ChecksumPayload},
		{mcd.ChecksumAuto, mcd.ChecksumHeader, mcd.ChecksumPayload},
		{mcd.ChecksumPayload, mcd.ChecksumAuto, mcd.ChecksumPayload},
		{mcd.ChecksumHeader, mcd.ChecksumAuto, mcd.ChecksumHeader},
	} {
		t.Run(fmt.Sprintf("%v from %v", c.receives, c.sends), func(t *testing.T) {
			links, altered := switched(t, 2), new(atomic.Bool)
			nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{links[0].MAC()}}, {ID: 1, MACs: []transport.MAC{links[1].MAC()}}}
			open := func(k mcd.NodeID, sum mcd.Checksum, l transport.Link) *mcd.Endpoint {
				e, err := mcd.Open(mcd.Config{Cluster: cluster, Node: k, Nodes: nodes, Checksum: sum}, l)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = e.Close() })
				return e
			}
			a := open(0, c.sends, exact{links[0], true, altered})
			if got := a.Checksum(0); got != mcd.ChecksumHeader {
				t.Errorf("before the other node is there: %v, want header", got)
			}
			from := port(t, a, 9)
			send(t, from, mcd.Addr{Node: 1, Port: 8}, []byte("early")) // it lies in the link, and is for no port
			b := open(1, c.receives, around{exact{links[1], true, altered}})
			if got := a.Checksum(0); got != c.want {
				t.Errorf("then: %v, want %v", got, c.want)
			}
			to := port(t, b, 9)
			send(t, from, mcd.Addr{Node: 1, Port: 9}, []byte("late"))
			expect(t, to, mcd.Addr{Node: 0, Port: 9}, "late")
			want := uint64(0)
			if c.want == mcd.ChecksumPayload {
				want = 1
			}
			if got := b.Counters().DropChecksum; got != want {
				t.Errorf("%d messages dropped, want %d: the one that nothing covers", got, want)
			}
		})
	}
}
