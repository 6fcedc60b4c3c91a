//go:build linux

package keyring_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// stranger is a station without the key on the segment of nodes 0 and 1, and what it has heard.
type stranger struct {
	t        *testing.T
	bed      *testbed.Bed
	open     func(ifname string) (transport.Link, error)
	nodes    []mcd.Node
	keys     *keyring.Ring
	link     transport.Link // in a namespace of its own
	es       [2]*mcd.Endpoint
	ports    [2]*mcd.Port
	recorded []transport.Frame
}

// in opens a link in a node's namespace.
func (s *stranger) in(node int, open func(string) (transport.Link, error)) transport.Link {
	s.t.Helper()
	l, err := testbed.In(s.bed.Node(node), func() (transport.Link, error) { return open(testbed.Interface(0)) })
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// start opens node k, anew if it was open.
func (s *stranger) start(k int) {
	s.t.Helper()
	if s.es[k] != nil {
		_ = s.es[k].Close()
	}
	e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: s.nodes, Keys: s.keys}, s.in(k, s.open))
	if err != nil {
		s.t.Fatal(err)
	}
	s.es[k] = e
	if s.ports[k], err = e.OpenPort(1, mcd.PortOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// talk sends a message from node 0 to node 1, which must arrive.
func (s *stranger) talk(text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	if err := s.ports[0].Send(ctx, s.ports[1].Addr(), []byte(text)); err != nil {
		s.t.Fatal(err)
	}
	buf := make([]byte, 100)
	if n, _, err := s.ports[1].Recv(ctx, buf); err != nil || string(buf[:n]) != text {
		s.t.Fatalf("got %q, %v; want %q", buf[:n], err, text)
	}
}

// hear records what a link beside node 1's has received.
func (s *stranger) hear(tap transport.Link) {
	s.t.Helper()
	frames := make([]transport.Frame, 64)
	for {
		n, err := tap.Poll(frames)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, f := range frames[:n] {
			f.Payload = slices.Clone(f.Payload)
			s.recorded = append(s.recorded, f)
		}
		if n == 0 && len(s.recorded) >= 6 { // 5 messages, and contact
			return
		}
	}
}

func refused(c mcd.Counters) uint64 {
	return c.DropShort + c.DropVersion + c.DropLength + c.DropKind + c.DropCluster + c.DropNode + c.DropGroup + c.DropSource +
		c.DropNoPort + c.DropPlain + c.DropKey + c.DropTag + c.DropReplay + c.DropStale + c.DropBudget
}

// attack sends frames to node 1, and returns when it has refused as many messages as it has not
// delivered. Contact frames are answered or not, and change nothing.
func (s *stranger) attack(what string, frames []transport.Frame, least uint64) {
	s.t.Helper()
	before := s.es[1].Counters()
	for _, f := range frames {
		for deadline := time.Now().Add(10 * time.Second); ; {
			n, err := s.link.Send([]transport.Frame{f})
			if n == 1 {
				break
			}
			if time.Now().After(deadline) {
				s.t.Fatal(err)
			}
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for refused(s.es[1].Counters())-refused(before) < least {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %d refused, want %d: %+v", what, refused(s.es[1].Counters())-refused(before), least, s.es[1].Counters())
		}
		s.es[1].Progress()
	}
	if got := s.es[1].Counters().RxMessages - before.RxMessages; got != 0 {
		s.t.Errorf("%s: %d messages were delivered", what, got)
	}
}

// A third node sends again what was recorded, changes each byte of it, forges, and sends without a
// key: nothing is delivered, all is counted, and the nodes go on.
func TestStrangerOnTheWire(t *testing.T) {
	for name, open := range map[string]func(string) (transport.Link, error){
		"ring":   func(ifname string) (transport.Link, error) { return ring.Open(ifname, ring.Config{}) },
		"packet": func(ifname string) (transport.Link, error) { return packet.Open(ifname, packet.Config{}) },
	} {
		for _, encrypt := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " encrypt ", encrypt), func(t *testing.T) {
				s := &stranger{t: t, bed: testbed.ForTest(t, testbed.Config{Nodes: 3}), open: open, keys: keyring.New()}
				s.keys.Encrypt = encrypt
				s.run()
			})
		}
	}
}

func (s *stranger) run() {
	t := s.t
	anyPacket := func(ifname string) (transport.Link, error) { return packet.Open(ifname, packet.Config{}) }
	tap := s.in(1, anyPacket)
	defer tap.Close()
	s.link = s.in(2, anyPacket)
	defer s.link.Close()
	probe := s.in(0, anyPacket)
	s.nodes = []mcd.Node{{ID: 0, MACs: []transport.MAC{probe.MAC()}}, {ID: 1, MACs: []transport.MAC{tap.MAC()}}}
	_ = probe.Close()
	s.start(0)
	s.start(1)
	defer func() { _, _ = s.es[0].Close(), s.es[1].Close() }()
	for i := range 5 {
		s.talk(fmt.Sprint("message ", i))
	}
	s.hear(tap)
	var messages []transport.Frame
	for _, f := range s.recorded {
		if f.Payload[0]&0x0f == 1 {
			messages = append(messages, f)
		}
	}
	if len(messages) != 5 {
		t.Fatalf("recorded %d messages of %d frames, want 5", len(messages), len(s.recorded))
	}
	s.attack("recorded", s.recorded, 5)

	var changed []transport.Frame
	last := messages[len(messages)-1]
	for i := range last.Payload {
		f := last
		f.Payload = slices.Clone(last.Payload)
		f.Payload[i] ^= 1
		changed = append(changed, f)
	}
	s.attack("changed", changed, uint64(len(changed)))
	forged := make([]transport.Frame, 500)
	for i := range forged {
		forged[i] = last
		forged[i].Payload = slices.Clone(last.Payload)
		forged[i].Payload[16+i%8] += byte(1 + i/8) // other incarnations
	}
	s.attack("forged", forged, uint64(len(forged)))
	plain := last
	plain.Payload = append([]byte{0x11}, slices.Clone(last.Payload[1:])...)
	s.attack("without a key", []transport.Frame{plain}, 1)
	if s.es[1].Counters().DropPlain != 1 {
		t.Errorf("drop_plain: %d, want 1", s.es[1].Counters().DropPlain)
	}
	s.talk("still there")

	s.start(1)
	s.attack("recorded before the receiver was started again", s.recorded, 5)
	s.talk("to the new one")
	s.start(0)
	s.talk("from the new one")
	s.attack("recorded before the sender was started again", s.recorded, 5)
	s.talk("the end")
}
