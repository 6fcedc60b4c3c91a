package mcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// A batch of frames of all kinds: what is dropped, and what is for no port, does not keep what comes
// behind it from its ports, in order.
func TestReceive_MixedBatch(t *testing.T) {
	e, p1, _, others := openScripts(t, 1)
	p2, err := e.OpenPort(2, PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	frame := func(kind wire.Kind, port uint8, text string) transport.Frame {
		b := make([]byte, HeaderLen+len(text))
		wire.Put(b, &wire.Header{Kind: kind, From: 1, DstPort: port}, []byte(text))
		return transport.Frame{Dst: e.MAC(0), EtherType: transport.EtherTypeDefault, Payload: b}
	}
	changed := frame(wire.Unicast, 1, "changed")
	changed.Payload[HeaderLen]++
	foreign := frame(wire.Unicast, 1, "of another protocol")
	foreign.EtherType++
	head := make([]byte, MinProbe)
	(&wire.ProbeHead{Number: 1, Incarnation: 9}).Put(head)
	probe := frame(wire.Probe, 0, string(head))
	good := func(port uint8, text string) transport.Frame { return frame(wire.Unicast, port, text) }
	batch := []transport.Frame{
		changed, good(1, "a"), probe, good(1, "b"), good(9, "for no port"), good(1, "c"), good(2, "d"), foreign,
		good(2, "e"), good(1, "f"), probe, probe, good(2, "g"), changed,
	}
	if _, err := others[0].Send(batch); err != nil {
		t.Fatal(err)
	}
	e.Progress()
	for i, want := range []string{"abcf", "deg"} {
		p, got := []*Port{p1, p2}[i], ""
		buf := make([]byte, 100)
		for {
			n, _, ok, err := p.TryRecv(buf)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got += string(buf[:n])
		}
		if got != want {
			t.Errorf("port %d got %q, want %q", p.ID(), got, want)
		}
	}
	c := e.Counters()
	if c.DropChecksum != 2 || c.DropNoPort != 1 || c.DropType != 1 || c.RxProbes != 3 || c.ProbesAnswered != 3 || c.RxMessages != 7 {
		t.Errorf("%+v", c)
	}
}

// Which probes and replies are taken, by their header and head.
func TestAcceptProbe(t *testing.T) {
	e, _, _, _ := openScripts(t, 1)
	self, other := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	group := transport.MAC{3, 0, 0, 0, 0, 9}
	own := e.probes.incarnation
	for _, c := range []struct {
		name        string
		kind        wire.Kind
		from, to    uint16
		flags       uint8
		incarnation uint32
		dst, src    transport.MAC
		cause       drop
		ok          bool
	}{
		{"a probe", wire.Probe, 1, 0, 0, own + 1, self, other, 0, true},
		{"a reply", wire.Reply, 1, 0, 0, own + 1, self, other, 0, true},
		{"for another node", wire.Probe, 1, 2, 0, own + 1, self, other, dropNode, false},
		{"for any node", wire.Probe, 1, 2, wire.ProbeAnyNode, own + 1, self, other, 0, true},
		{"a reply for another node", wire.Reply, 1, 2, 0, own + 1, self, other, dropNode, false},
		{"a reply for any node", wire.Reply, 1, 2, wire.ProbeAnyNode, own + 1, self, other, dropNode, false},
		{"to a group", wire.Probe, 1, 0, 0, own + 1, group, other, dropProbe, false},
		{"from a group", wire.Probe, 1, 0, 0, own + 1, self, group, dropProbe, false},
		{"its own, back", wire.Probe, 0, 0, 0, own, transport.Broadcast, self, 0, true},
		{"its own number and another endpoint", wire.Probe, 0, 0, 0, own + 1, self, other, dropSource, false},
		{"its own reply", wire.Reply, 0, 0, 0, own, self, self, dropSource, false},
		{"its own, to another node", wire.Probe, 0, 1, 0, own, self, self, dropSource, false},
	} {
		payload := make([]byte, wire.ProbeHeadLen)
		(&wire.ProbeHead{Number: 1, Flags: c.flags, Incarnation: c.incarnation}).Put(payload)
		h := wire.Header{Kind: c.kind, From: c.from, To: c.to, Payload: payload}
		var head wire.ProbeHead
		cause, ok := e.acceptProbe(&transport.Frame{Dst: c.dst, Src: c.src}, &h, &head)
		if ok != c.ok || !ok && cause != c.cause {
			t.Errorf("%s: taken %v, counter %d; want %v, %d", c.name, ok, cause, c.ok, c.cause)
		}
		h.Payload = payload[1:]
		if cause, ok := e.acceptProbe(&transport.Frame{Dst: c.dst, Src: c.src}, &h, &head); ok || cause != dropProbe {
			t.Errorf("%s, too short: taken %v, counter %d", c.name, ok, cause)
		}
	}
}

// What ProbeOptions say stands in the probe's head.
func TestProbeOptions_Head(t *testing.T) {
	tag := transport.Tagged(transport.Tag{VID: 5, PCP: 1})
	for _, c := range []struct {
		o    ProbeOptions
		want wire.ProbeHead
		size int
	}{
		{ProbeOptions{}, wire.ProbeHead{}, MinProbe},
		{ProbeOptions{AnyNode: true, Size: MinProbe + 3}, wire.ProbeHead{Flags: wire.ProbeAnyNode}, MinProbe + 3},
		{ProbeOptions{ReplyTag: &transport.Untagged, Body: []byte("abcd"), Size: MinProbe + 4},
			wire.ProbeHead{Flags: wire.ProbeReplyTag}, MinProbe + 4},
		{ProbeOptions{ReplyTag: &tag},
			wire.ProbeHead{Flags: wire.ProbeReplyTag | wire.ProbeReplyTagged, ReplyTCI: 0x2005}, MinProbe},
	} {
		c.want.Number, c.want.Incarnation = 7, 8
		size, err := c.o.size(1000)
		if got := c.o.head(7, 8); got != c.want || size != c.size || err != nil {
			t.Errorf("%+v: %+v of %d bytes (%v), want %+v of %d", c.o, got, size, err, c.want, c.size)
		}
	}
}

// A probe of a length that it cannot have is refused before anything is sent.
func TestProbe_SizesThatItCannotHave(t *testing.T) {
	e, _, links, _ := openScripts(t, 1)
	links[0].send = func([]transport.Frame) (int, error) { t.Error("a frame is sent"); return 0, nil }
	over, cancel := context.WithCancel(t.Context()) // whoever waits for a reply does so in vain
	cancel()
	body := []byte("abcd")
	for _, c := range []struct {
		o    ProbeOptions
		want string
	}{
		{ProbeOptions{Size: -1}, fmt.Sprintf("size -1: want %d or more", MinProbe)},
		{ProbeOptions{Size: 1}, fmt.Sprintf("size 1: want %d or more", MinProbe)},
		{ProbeOptions{Size: MinProbe - 1}, fmt.Sprintf("size %d: want %d or more", MinProbe-1, MinProbe)},
		{ProbeOptions{Size: MinProbe + 3, Body: body}, fmt.Sprintf("size %d: want %d or more", MinProbe+3, MinProbe+4)},
		{ProbeOptions{Size: e.MaxPayload() + 1}, "too large"},
		{ProbeOptions{Body: make([]byte, e.MaxPayload()-MinProbe+1)}, "too large"},
	} {
		_, tried := e.TryProbe(Path{Node: 1}, c.o)
		_, pinged := e.Ping(over, Path{Node: 1}, c.o)
		for _, err := range []error{tried, pinged} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("size %d: %v, want %q", c.o.Size, err, c.want)
			}
		}
	}
}

// A reply for which the link has no room is counted as such.
func TestProbe_ReplyWithoutRoom(t *testing.T) {
	e, _, links, others := openScripts(t, 1)
	links[0].send = func([]transport.Frame) (int, error) { return 0, transport.ErrBusy }
	b := make([]byte, HeaderLen+MinProbe)
	(&wire.ProbeHead{Number: 1, Incarnation: 9}).Put(b[HeaderLen:])
	wire.Seal(b, &wire.Header{Kind: wire.Probe, From: 1})
	if _, err := others[0].Send([]transport.Frame{
		{Dst: e.MAC(0), Src: others[0].MAC(), EtherType: transport.EtherTypeDefault, Payload: b},
	}); err != nil {
		t.Fatal(err)
	}
	for e.Counters().RxProbes == 0 {
		e.Progress()
	}
	for !e.tryLockPoll() { // who has counted the probe may be about to answer
		continue
	}
	e.unlockPoll()
	if c := e.Counters(); c.ProbesUnanswered != 1 || c.ProbesAnswered != 0 || c.RxProbes != 1 {
		t.Errorf("%+v", c)
	}
}

// A group that one link cannot join is not joined by the others.
func TestJoin_OneLinkFails(t *testing.T) {
	e, _, links, _ := openScripts(t, 3)
	full := errors.New("filter is full")
	links[2].join = func(transport.MAC) error { return full }
	if err := e.Join(7); !errors.Is(err, full) || !strings.Contains(err.Error(), "join group 7") {
		t.Errorf("Join: %v", err)
	}
	for nic, want := range []int{1, 1, 0} {
		if got := len(links[nic].left); got != want {
			t.Errorf("link %d has left %d groups, want %d", nic, got, want)
		}
	}
	if err := e.Leave(7); !errors.Is(err, ErrNotMember) {
		t.Errorf("Leave: %v, want ErrNotMember", err)
	}
	links[2].join = nil
	for range 2 {
		if err := e.Join(7); err != nil {
			t.Fatal(err)
		}
	}
	for want := 0; want < 2; want++ {
		if err := e.Leave(7); err != nil || len(links[2].left) != want {
			t.Errorf("Leave: %v, and link 2 has left %d groups, want %d", err, len(links[2].left), want)
		}
	}
}

func TestOpen_RefusesBadConfiguration(t *testing.T) {
	x, _ := linktest.Pipe()
	if _, err := Open(Config{}); err == nil || !strings.Contains(err.Error(), "no links") {
		t.Errorf("no links: %v", err)
	}
	if _, err := Open(Config{Node: MaxNodeID + 1}, x); err == nil || !strings.Contains(err.Error(), "Config.Node") {
		t.Errorf("node %d: %v", MaxNodeID+1, err)
	}
	e, err := Open(Config{Node: MaxNodeID, Cluster: 77}, x)
	if err != nil {
		t.Fatal(err)
	}
	if e.Node() != MaxNodeID || e.Cluster() != 77 || e.NICs() != 1 || e.MAC(0) != x.MAC() {
		t.Errorf("node %d of cluster %d with %d links", e.Node(), e.Cluster(), e.NICs())
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// A path by a link that there is not has an error that says how many there are.
func TestPath_BadLink(t *testing.T) {
	e, _, _, _ := openScripts(t, 2)
	for _, nic := range []int{-1, 2} {
		if _, err := e.Path(1, nic); err == nil || !strings.Contains(err.Error(), "the endpoint has 2") {
			t.Errorf("Path by link %d: %v", nic, err)
		}
		if _, err := e.TryProbe(Path{Node: 1, NIC: nic}, ProbeOptions{}); err == nil || !strings.Contains(err.Error(), "the endpoint has 2") {
			t.Errorf("TryProbe by link %d: %v", nic, err)
		}
	}
	for nic := range 2 {
		if p, err := e.Path(1, nic); err != nil || p.NIC != nic || p.Node != 1 {
			t.Errorf("Path by link %d: %v, %v", nic, p, err)
		}
	}
	for _, node := range []NodeID{0, 2, 3, MaxNodeID} { // the table has node 1 alone
		if _, err := e.Path(node, 0); !errors.Is(err, ErrUnknownNode) {
			t.Errorf("Path to node %d: %v", node, err)
		}
	}
}

// A message that is on its way into a buffer when its receiver gives up counts as received.
func TestTakeBack_OfWhatIsBeingFilled(t *testing.T) {
	_, p, _, _ := openScripts(t, 1)
	for _, filled := range []bool{false, true} {
		d := &RecvDesc{Buf: make([]byte, 4)}
		if err := p.PostRecv(d); err != nil {
			t.Fatal(err)
		}
		if !filled {
			if !p.takeBack(d) || d.Done() {
				t.Error("an empty buffer was not taken back")
			}
			continue
		}
		p.mu.Lock()
		p.posted.PopFront() // as place does
		p.mu.Unlock()
		began, ended := make(chan bool), make(chan bool)
		go func() { close(began); ended <- p.takeBack(d) }()
		<-began
		d.completion.Complete(nil)
		if <-ended {
			t.Error("a buffer that is being filled was taken back")
		}
	}
	p.Close()
	if _, _, ok, err := p.TryRecv(nil); ok || !errors.Is(err, ErrClosed) {
		t.Errorf("TryRecv of a closed port: %v, %v", ok, err)
	}
}

// An endpoint with keys that has used up its counters sends nothing more, and says so.
func TestKeys_Exhausted(t *testing.T) {
	e, p, _, _ := openScripts(t, 1, func(c *Config) { c.Keys = keyring.New() })
	e.nics[0].auth.counter.Store(auth.LastCounter - 1)
	to := To(Addr{Node: 1, Port: 1})
	if err := p.TrySend(0, to, nil); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if err := p.TrySend(0, to, nil); !errors.Is(err, errExhausted) {
		t.Errorf("one more: %v", err)
	}
}

// A node that has been there for long sends to one that has just opened and does not know it: a
// probe, a message, and one to a port that is not open. All are kept until contact is made, and
// none is taken for one from before.
func TestKeys_FirstMessagesToANewNode(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ring := keyring.New()
			ring.Encrypt = encrypt
			x, y := twoLinks(t)
			links := []*script{{Link: x}, {Link: y}}
			nodes := []Node{{ID: 0, MACs: []transport.MAC{x.MAC()}}, {ID: 1, MACs: []transport.MAC{y.MAC()}}}
			for _, l := range links { // what asks all nodes is lost
				l.send = func(frames []transport.Frame) (int, error) {
					if frames[0].Dst == transport.Broadcast {
						return len(frames), nil
					}
					return l.Link.Send(frames)
				}
			}
			open := func(k int) (*Endpoint, *Port) {
				e, err := Open(Config{Node: NodeID(k), Nodes: nodes, Spin: -1, Keys: ring}, links[k])
				if err != nil {
					t.Fatal(err)
				}
				p, err := e.OpenPort(1, PortOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return e, p
			}
			e0, p0 := open(0)
			defer e0.Close()
			for range 500 { // for two seconds, to all
				if err := p0.TrySend(0, ToAll(3), nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(4 * time.Millisecond)
			}
			e1, p1 := open(1)
			defer e1.Close()
			replies := make(chan *Probe, 1)
			defer e0.WatchProbes(func(p *Probe) { replies <- p })()
			if _, err := e0.TryProbe(Path{Node: 1}, ProbeOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, to := range []PortID{2, 1} {
				if err := p0.TrySend(0, To(Addr{Node: 1, Port: to}), []byte("first")); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
			buf := make([]byte, 10)
			if n, from, ok, err := p1.TryRecv(buf); !ok || err != nil || string(buf[:n]) != "first" || from != p0.Addr() {
				t.Errorf("encrypt %v: got %q from %v, %v, %v", encrypt, buf[:n], from, ok, err)
			}
			if len(replies) != 1 {
				t.Errorf("encrypt %v: the probe has %d replies", encrypt, len(replies))
			}
			if c := e1.Counters(); c.DropNoPort != 1 || c.DropStale != 0 || c.RxProbes != 1 {
				t.Errorf("encrypt %v: %+v", encrypt, c)
			}
		})
	}
}

// Contact with a node is begun before the first message to it, and not only when its receiver asks:
// at once, once for each node.
func TestKeys_ContactBeginsWithTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, links, others := openScripts(t, 1, func(c *Config) { c.Keys = keyring.New() })
		defer e.Close()
		time.Sleep(10 * time.Second) // nobody has answered what the endpoint asks all nodes
		synctest.Wait()              // its goroutines do not use the link now
		var mu sync.Mutex
		var contacts []time.Time
		links[0].send = func(frames []transport.Frame) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, f := range frames {
				if f.Dst == others[0].MAC() && wire.Kind(f.Payload[0]&0x0f) == wire.Contact {
					contacts = append(contacts, time.Now())
				}
			}
			return len(frames), nil
		}
		start := time.Now()
		for range 3 {
			if err := p.TrySend(0, To(Addr{Node: 1, Port: 1}), nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(contacts) != 1 || !contacts[0].Equal(start) {
			t.Errorf("contact was begun %d times at once, want once", len(contacts))
		}
	})
}
