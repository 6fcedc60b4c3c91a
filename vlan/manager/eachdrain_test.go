package manager

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// detached returns a session without a manager, which takes in what the test tells.
func detached(t *testing.T) (s *Session, events chan Event) {
	events = make(chan Event, 9)
	s = &Session{fib: newFIB(), own: make(map[transport.MAC]int), woken: make(chan struct{}, 1),
		dialer: Dialer{DrainTimeout: time.Second, OnEvent: func(e Event) { events <- e }}}
	s.moved = sync.NewCond(&s.mu)
	s.ctx, s.cancel = context.WithCancel(t.Context())
	return s, events
}

// tell has the session be told all routes of its node, and drains those that change.
func (s *Session) tell(routes ...vlan.Route) {
	_ = s.take(&api.SessionEvent{Full: true, Routes: api.RoutesOf(routes)})
	for s.drainOthers() {
	}
}

func by(dst transport.MAC, vid transport.VID) vlan.Route {
	return vlan.Route{Dst: dst, OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
}

// star is nodes of which the first sends by a session's routes, in virtual time.
type star struct {
	s      *Session
	events chan Event
	macs   []transport.MAC
	ports  []*mcd.Port
}

// newStar opens nodes. Frames of VID 1 take so long to each.
func newStar(t *testing.T, delays ...time.Duration) *star {
	links, err := fabric.Links(1 + len(delays))
	if err != nil {
		t.Fatal(err)
	}
	n := &star{}
	n.s, n.events = detached(t)
	var nodes []mcd.Node
	for k, l := range links {
		n.macs = append(n.macs, l.MAC())
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}})
	}
	for k := range links {
		cfg := mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Spin: -1, Backlog: 5000}
		var link transport.Link = links[k]
		if k == 0 {
			cfg.Router = n.s.Table()
		} else if link, err = fault.New(link, rand.New(rand.NewPCG(1, 1)), fault.Config{
			Delay: 1, DelayMin: delays[k-1], DelayMax: delays[k-1],
			Match: func(f *transport.Frame) bool { return f.Tagged && f.Tag.VID == 1 },
		}); err != nil {
			t.Fatal(err)
		}
		e, err := mcd.Open(cfg, link)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		p, err := e.OpenPort(1, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n.ports = append(n.ports, p)
	}
	return n
}

// stream sends a message each millisecond to a node until stop, which returns the longest time that
// a Send took, and how many messages were overtaken.
func (n *star) stream(t *testing.T, to int) (stop func() (longest time.Duration, overtaken int)) {
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan uint32)
	var longest time.Duration
	go func() {
		count := uint32(0)
		for ; ctx.Err() == nil; count++ {
			begun := time.Now()
			if err := n.ports[0].Send(t.Context(), n.ports[to].Addr(), binary.BigEndian.AppendUint32(nil, count)); err != nil {
				t.Error(err)
			}
			longest = max(longest, time.Since(begun))
			time.Sleep(time.Millisecond)
		}
		sent <- count
	}()
	time.Sleep(50 * time.Millisecond)
	return func() (time.Duration, int) {
		time.Sleep(50 * time.Millisecond)
		cancel()
		overtaken, next := 0, uint32(0)
		b := make([]byte, 4)
		for range <-sent {
			if _, _, err := n.ports[to].Recv(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if got := binary.BigEndian.Uint32(b); got < next {
				overtaken++
			} else {
				next = got + 1
			}
		}
		return longest, overtaken
	}
}

// One node that is dead spoils no drain of another, by which messages stay in order, and holds it up
// for as long as its own drain takes. What was held back for the dead node goes by the new route.
func TestSession_DeadNodeSpoilsNoDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 20 * time.Millisecond
		n := newStar(t, 24*time.Hour, slow)
		n.s.tell(by(n.macs[1], 1), by(n.macs[2], 1))
		n.s.DrainWith(mcd.AddressDrain{Endpoint: n.ports[0].Endpoint()})
		stop := n.stream(t, 2)
		time.AfterFunc(slow/2, func() { // while the drain is under way
			d := &mcd.SendDesc{To: mcd.To(n.ports[1].Addr()), Payload: []byte("held")}
			if err := n.ports[0].PostSend(d); err != nil || d.Done() {
				t.Errorf("done %v, %v; want it held back", d.Done(), err)
			}
		})
		n.s.tell(by(n.macs[1], 2), by(n.macs[2], 2))
		if longest, overtaken := stop(); longest > slow || overtaken > 0 {
			t.Errorf("a Send took %v, and %d messages were overtaken; want at most %v, and none", longest, overtaken, slow)
		}
		var silent *mcd.NoAnswerError
		var e Event
		if len(n.events) > 0 {
			e = <-n.events
		}
		if e.Kind != EventUndrained || !errors.As(e.Err, &silent) || silent.Path.Node != 1 || n.s.Stats().Undrained != 1 {
			t.Errorf("event %+v, want that node 1 was silent", e)
		}
		b := make([]byte, 10) // by VID 1 it comes after a day
		if k, _, ok, err := n.ports[1].TryRecv(b); err != nil || !ok || string(b[:k]) != "held" {
			t.Errorf("%q, %v; want what was held, by VID 2", b[:k], err)
		}
	})
}

// Nodes that have no route of their own are drained before the default route changes.
func TestSession_DefaultRouteIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 200 * time.Millisecond
		n := newStar(t, time.Millisecond, slow)
		n.s.tell(by(n.macs[1], 1), by(transport.Broadcast, 1))
		n.s.DrainWith(mcd.AddressDrain{Endpoint: n.ports[0].Endpoint()})
		stop := n.stream(t, 2)
		n.s.tell(by(n.macs[1], 1), by(transport.Broadcast, 2))
		if tag := n.s.Table().Route(n.macs[2]); tag.Tag.VID != 2 {
			t.Errorf("%v, want VID 2", tag)
		}
		if longest, overtaken := stop(); longest > slow || overtaken > 0 || n.s.Stats().Undrained > 0 {
			t.Errorf("a Send took %v, %d messages were overtaken, %d changes undrained", longest, overtaken, n.s.Stats().Undrained)
		}
	})
}

// script is an EachDrainer that drains addresses one after the other, Broadcast last.
type script struct {
	together
	drained [][]transport.MAC
	behind  func(dst transport.MAC)
}

func (d *script) DrainEach(
	_ context.Context, change func(dst []transport.MAC, err error), dst ...transport.MAC,
) {
	slices.SortFunc(dst, transport.MAC.Compare)
	d.drained = append(d.drained, dst)
	for _, mac := range dst {
		change([]transport.MAC{mac}, nil)
		d.behind(mac)
	}
}

// A node that loses its own route in the change of the default one keeps it until that has changed,
// and is drained again: it goes by the old default route at no time.
func TestSession_RouteGoesWithTheDefaultOne(t *testing.T) {
	s, _ := detached(t)
	gone, other := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	s.tell(by(gone, 3), by(other, 1), by(transport.Broadcast, 1))
	d := &script{}
	var seen []transport.VID
	d.behind = func(transport.MAC) { seen = append(seen, s.Table().Route(gone).Tag.VID) }
	s.DrainWith(d)
	s.tell(by(other, 2), by(transport.Broadcast, 2))
	if want := []transport.VID{3, 3, 3, 2}; !slices.Equal(seen, want) || len(d.drained) != 2 || !slices.Equal(d.drained[1], []transport.MAC{gone}) {
		t.Errorf("behind the changes of %v it goes by VIDs %v, want %v", d.drained, seen, want)
	}
}

// A session that is closed while a drain is under way keeps its table.
func TestSession_ClosedWhileItDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newStar(t, 24*time.Hour)
		n.s.tell(by(n.macs[1], 1))
		n.s.DrainWith(mcd.AddressDrain{Endpoint: n.ports[0].Endpoint()})
		time.AfterFunc(time.Millisecond, n.s.cancel)
		n.s.tell(by(n.macs[1], 2))
		if tag := n.s.Table().Route(n.macs[1]).Tag; tag.VID != 1 || len(n.events) > 0 {
			t.Errorf("%v, %d events; want VID 1, and none", tag, len(n.events))
		}
	})
}
