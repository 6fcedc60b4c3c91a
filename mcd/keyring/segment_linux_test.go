//go:build linux

package keyring_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/internal/crc32c"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

// protection is what a cluster does about strangers.
type protection string

const (
	plain         protection = "without a key"
	authenticated protection = "with a key"
	encrypted     protection = "with a key, encrypted"
)

// Offsets of docs/wire-format.md: the test does not use the code that it tests.
const (
	headerLen     = 20
	authHeaderLen = 48
	checksumAt    = 16
	counterAt     = 24
	contactKind   = 6
)

// segment is two nodes and a stranger, each in a namespace of its own, on one bridge.
type segment struct {
	t          *testing.T
	bed        *testbed.Bed
	protection protection
	keys       *keyring.Ring
	talk       talk
	es         [2]*mcd.Endpoint
	tap        transport.Link // hears what node 1 hears
	stranger   transport.Link
	recorded   []transport.Frame // of node 0 to node 1, contact frames among them
}

func newSegment(t *testing.T, p protection, what talk) *segment {
	s := &segment{t: t, bed: testbed.ForTest(t, testbed.Config{Nodes: 3}), protection: p, talk: what}
	if p != plain {
		s.keys = keyring.New()
		s.keys.Encrypt = p == encrypted
	}
	// Otherwise the bridge would give node 0's frames to the stranger, who sends with its address.
	if err := s.bed.SetLearning(2, 0, false); err != nil {
		t.Fatal(err)
	}
	s.tap, s.stranger = s.packet(1), s.packet(2)
	t.Cleanup(func() { _, _ = s.tap.Close(), s.stranger.Close() })
	t.Cleanup(func() {
		for _, e := range s.es {
			if e != nil {
				_ = e.Close()
			}
		}
	})
	return s
}

// packet opens a link that hears everything, in a node's namespace.
func (s *segment) packet(node int) transport.Link {
	s.t.Helper()
	l, err := testbed.In(s.bed.Node(node), func() (*packet.Link, error) {
		return packet.Open(testbed.Interface(0), packet.Config{Promiscuous: true})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// start opens node k, anew if it was open, and on it what the talk needs. Node 0 is opened once.
func (s *segment) start(k int) {
	s.t.Helper()
	if s.es[k] != nil {
		if err := errors.Join(s.es[k].Close(), s.talk.renew(s)); err != nil {
			s.t.Fatal(err)
		}
	}
	var nodes []mcd.Node
	for n := range s.es {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(n), MACs: []transport.MAC{testbed.MAC(n, 0)}})
	}
	if _, ok := s.talk.(*discovery); ok {
		nodes = nil
	}
	l, err := testbed.In(s.bed.Node(k), func() (*ring.Link, error) {
		return ring.Open(testbed.Interface(0), ring.Config{})
	})
	if err == nil {
		s.es[k], err = mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Keys: s.keys, Spin: -1}, l)
	}
	if err == nil {
		err = s.talk.open(s, k)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *segment) speak() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.talk.talk(ctx, s); err != nil {
		s.t.Fatal(err)
	}
}

// record takes the frames of node 0 that node 1 has got, and returns when node 1 has believed them:
// one that it has not seen before it may believe later.
func (s *segment) record() {
	s.t.Helper()
	frames := make([]transport.Frame, 64)
	for {
		n, err := s.tap.Poll(frames)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, f := range frames[:n] {
			if f.Src == testbed.MAC(0, 0) && (f.Dst == testbed.MAC(1, 0) || f.Dst.IsMulticast()) {
				f.Payload = slices.Clone(f.Payload)
				s.recorded = append(s.recorded, f)
			}
		}
		if n == 0 {
			break
		}
	}
	all := uint64(len(s.messages()))
	if all == 0 {
		s.t.Fatalf("recorded no frame but %d for contact", len(s.recorded))
	}
	var c mcd.Counters
	if !s.soon(func() bool { c = s.es[1].Counters(); return c.RxMessages+c.RxProbes+c.RxReplies >= all }) {
		s.t.Fatalf("recorded %d messages, and node 1 has others: %+v", all, c)
	}
}

// messages are the recorded frames but for those by which nodes get to know each other: these may
// be answered, and change nothing.
func (s *segment) messages() (frames []transport.Frame) {
	for _, f := range s.recorded {
		if f.Payload[0]&0x0f != contactKind {
			frames = append(frames, f)
		}
	}
	return frames
}

// changed copies a recorded frame, and changes the copy.
func changed(f transport.Frame, change func(f *transport.Frame)) transport.Frame {
	f.Payload = slices.Clone(f.Payload)
	change(&f)
	return f
}

// altered changes each byte of the longest and the shortest frame of each kind.
func (s *segment) altered() (frames []transport.Frame) {
	some := map[[2]byte]transport.Frame{}
	for _, f := range s.recorded {
		kind := f.Payload[0] & 0x0f
		if o, ok := some[[2]byte{kind, 0}]; !ok || said(f) < said(o) {
			some[[2]byte{kind, 0}] = f
		}
		if o, ok := some[[2]byte{kind, 1}]; !ok || said(f) > said(o) {
			some[[2]byte{kind, 1}] = f
		}
	}
	for _, f := range some {
		for i := range said(f) {
			frames = append(frames, changed(f, func(f *transport.Frame) { f.Payload[i] ^= 1 << (i % 8) }))
		}
	}
	return frames
}

// said is how many bytes of a frame's payload are not padding.
func said(f transport.Frame) int {
	return authHeaderLen + int(binary.BigEndian.Uint16(f.Payload[12:]))
}

// forged are frames with counters that node 0 has not used yet: nothing but the tag tells them.
func (s *segment) forged() (frames []transport.Frame) {
	for _, f := range s.recorded {
		frames = append(frames, changed(f, func(f *transport.Frame) {
			counter := f.Payload[counterAt:]
			binary.BigEndian.PutUint64(counter, binary.BigEndian.Uint64(counter)+1<<20)
		}))
	}
	return frames
}

// moved are frames from another address, and to another one: the header does not have them.
func (s *segment) moved() (frames []transport.Frame) {
	for _, f := range s.recorded {
		frames = append(frames,
			changed(f, func(f *transport.Frame) { f.Src = s.stranger.MAC() }),
			changed(f, func(f *transport.Frame) {
				if f.Dst == transport.Broadcast {
					f.Dst = testbed.MAC(1, 0)
				} else {
					f.Dst = transport.Broadcast
				}
			}))
	}
	return frames
}

// unauthenticated are the messages in the form that nodes without a key send.
func (s *segment) unauthenticated() (frames []transport.Frame) {
	for _, f := range s.messages() {
		frames = append(frames, changed(f, func(f *transport.Frame) {
			b := append(f.Payload[:headerLen:headerLen], f.Payload[authHeaderLen:said(*f)]...)
			b[0], b[1] = 0x10|b[0]&0x0f, b[1]&1
			sum := crc32c.Update(crc32c.Update(0, b[:checksumAt]), b[headerLen:])
			binary.BigEndian.PutUint32(b[checksumAt:], sum)
			f.Payload = b
		}))
	}
	return frames
}

// dropped is how many frames node 1 has refused.
func (s *segment) dropped() uint64 { return refused(s.es[1].Counters()) }

// believed is how many it has believed, less those that node 0 has sent.
func (s *segment) believed() int64 {
	a, b := s.es[0].Counters(), s.es[1].Counters()
	return int64(b.RxMessages+b.RxProbes+b.RxReplies) - int64(a.TxMessages+a.ProbesAnswered)
}

// attack sends frames to node 1, and returns when it has refused them all. They have no effect.
func (s *segment) attack(what string, frames []transport.Frame) {
	s.t.Helper()
	if err := s.talk.tempt(s); err != nil {
		s.t.Fatal(err)
	}
	for part := range slices.Chunk(frames, 128) { // for which the ring has room
		before := s.dropped()
		s.send(part)
		if !s.soon(func() bool { return s.dropped()-before >= uint64(len(part)) }) {
			s.t.Fatalf("%s: %d of %d refused: %+v", what, s.dropped()-before, len(part), s.es[1].Counters())
		}
	}
	if err := s.talk.fooled(s); err != nil {
		s.t.Errorf("%s: %v; node 1: %+v", what, err, s.es[1].Counters())
	}
	s.speak() // all goes on
}

// send sends hostile frames.
func (s *segment) send(frames []transport.Frame) {
	s.t.Helper()
	sent := 0
	if !s.soon(func() bool {
		n, _ := s.stranger.Send(frames[sent:]) // busy, for a moment
		sent += n
		return sent == len(frames)
	}) {
		s.t.Fatalf("%d of %d frames sent", sent, len(frames))
	}
}

// soon waits for something that must happen.
func (s *segment) soon(done func() bool) bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	return until(ctx, func() bool { s.es[1].Progress(); return done() }) == nil
}

func (s *segment) run() {
	s.start(0)
	s.start(1)
	for range 3 {
		s.speak()
	}
	s.record()
	if s.protection == plain {
		before := s.believed()
		s.send(s.messages())
		if !s.soon(func() bool { return s.believed() > before }) {
			s.t.Errorf("without a key, too, none of %d recorded frames was believed: %+v", len(s.recorded), s.es[1].Counters())
		}
		return
	}
	s.attack("recorded", s.messages())
	s.attack("altered", s.altered())
	s.attack("forged", s.forged())
	s.attack("from and to other addresses", s.moved())
	s.attack("without a key", s.unauthenticated())
	s.start(1)
	s.attack("recorded before node 1 was started again", s.messages())
}
