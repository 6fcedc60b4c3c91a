package failover_test

import (
	"context"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/failover"

	"github.com/rawlane/rawlane/vlan/control"
)

// planes is a node with a kernel link for each VID, 1 and 2: what a host and its leaf switch are
// together. It has the address of the first link; on the second one's wire the addresses are that
// link's.
type planes struct {
	transport.Link // of VID 1
	second         transport.Link
	peer           [2]transport.MAC // the other node's addresses
}

func (l *planes) Send(frames []transport.Frame) (int, error) {
	for i := range frames {
		f := frames[i]
		link := l.Link
		if f.Tagged && f.Tag.VID == 2 {
			link, f.Src = l.second, l.second.MAC()
			if f.Dst == l.peer[0] {
				f.Dst = l.peer[1]
			}
		}
		if _, err := link.Send([]transport.Frame{f}); err != nil && link == l.Link || err != nil && i == 0 {
			return i, err
		}
	}
	return len(frames), nil
}

func (l *planes) Poll(frames []transport.Frame) (int, error) {
	n, _ := l.Link.Poll(frames) // a link that is down has none
	more, err := l.second.Poll(frames[n:])
	for i := range frames[n : n+more] {
		if f := &frames[n+i]; f.Src == l.peer[1] {
			f.Src = l.peer[0]
		}
	}
	return n + more, err
}

// Wait looks at both every millisecond: it is a test's.
func (l *planes) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := l.second.Wait(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (l *planes) Close() error {
	_ = l.second.Close() // the first one's error is the one to tell
	return l.Link.Close()
}

// On kernel links, both ring and packet: the veth that carries VID 1 is set down and up again,
// while records are pushed.
func TestFailoverWhenAnInterfaceGoesDown(t *testing.T) {
	for _, kind := range []struct {
		name string
		open func(ifname string) (transport.Link, error)
	}{
		{"ring", func(name string) (transport.Link, error) { return ring.Open(name, ring.Config{}) }},
		{"packet", func(name string) (transport.Link, error) { return packet.Open(name, packet.Config{}) }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			testbed.Need(t)
			bed, err := testbed.New(testbed.Config{Nodes: 2, NICs: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer bed.Close()
			n := onPlanes(t, bed, kind.open)
			n.pushThrough(t, func(i int) {
				switch i {
				case 150:
					if err := bed.Node(0).SetUp(0, false); err != nil {
						t.Error(err)
					}
				case 350:
					n.awaitVID(t, 0, 1, 2)
					if err := bed.Node(0).SetUp(0, true); err != nil {
						t.Error(err)
					}
				}
			})
			for _, m := range n.moves.take() {
				if m.Err != nil {
					t.Errorf("%v", m)
				}
			}
		})
	}
}

// onPlanes makes the two nodes, and has them watched.
func onPlanes(t *testing.T, bed *testbed.Bed, open func(string) (transport.Link, error)) *network {
	t.Helper()
	n := new(network)
	var nodes []mcd.Node
	for k := range 2 {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{testbed.MAC(k, 0)}})
	}
	for k := range 2 {
		var links [2]transport.Link
		for nic := range links {
			l, err := testbed.In(bed.Node(k), func() (transport.Link, error) { return open(testbed.Interface(nic)) })
			if err != nil {
				t.Fatal(err)
			}
			links[nic] = l
		}
		l := &planes{links[0], links[1], [2]transport.MAC{testbed.MAC(1-k, 0), testbed.MAC(1-k, 1)}}
		table, err := vlan.NewTable([]vlan.Route{{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 1})}})
		if err != nil {
			t.Fatal(err)
		}
		ep, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Router: table}, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ep.Close() })
		n.eps, n.tables = append(n.eps, ep), append(n.tables, table)
		d, err := failover.Start(ep, failover.Config{
			Failover: control.FailoverConfig{VIDs: []transport.VID{1, 2}, WaitToRestore: time.Second},
			Routes:   failover.Table(table), OnMove: n.moves.add,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
	}
	return n
}

// pushThrough pushes records from node 0 to node 1, 2 ms apart, and expects them there in order.
func (n *network) pushThrough(t *testing.T, at func(i int)) {
	t.Helper()
	if _, err := push(t, n.eps[0], n.eps[1], 500, 2*time.Millisecond, at); err != nil {
		t.Fatal(err)
	}
}

// awaitVID waits until a pair uses a VID, on a machine that may stand still for a second.
func (n *network) awaitVID(t *testing.T, from, to int, want transport.VID) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); n.vid(from, to) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%d -> %d: VID %d, want %d", from, to, n.vid(from, to), want)
			return
		}
	}
}
