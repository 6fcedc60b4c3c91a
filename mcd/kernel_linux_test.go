package mcd_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	rings "github.com/rawlane/rawlane/transport/ring"
)

// ringAt opens a ring in a node's namespace. It is closed with its endpoint, or else by the test.
func ringAt(t *testing.T, bed *testbed.Bed, node int, name string) *rings.Link {
	t.Helper()
	l, err := testbed.In(bed.Node(node), func() (*rings.Link, error) { return rings.Open(name, rings.Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// onRings opens two nodes on rings between two namespaces.
func onRings(t *testing.T, bed *testbed.Bed, cfg mcdtest.Config) (a, b *mcd.Endpoint) {
	t.Helper()
	cfg.Endpoint.Cluster = cluster
	es := mcdtest.OpenLinks(t, cfg,
		[]transport.Link{ringAt(t, bed, 0, "eth0")}, []transport.Link{ringAt(t, bed, 1, "eth0")})
	return es[0], es[1]
}

// exchange sends a message and waits for an answer, and repeats what is lost.
func exchange(t *testing.T, p *mcd.Port, to mcd.Addr, payload []byte) {
	t.Helper()
	for ctx := limit(t); ; {
		if err := p.Send(ctx, to, payload); err != nil {
			t.Fatal(err)
		}
		try, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		_, _, err := p.Recv(try, make([]byte, 2000))
		cancel()
		if err == nil {
			return
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

// answering opens a port whose Receive function sends each message back.
func answering(t *testing.T, e *mcd.Endpoint, id mcd.PortID) *mcd.Port {
	t.Helper()
	var p *mcd.Port
	ready := make(chan struct{})
	p = openPort(t, e, id, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		<-ready
		for _, m := range batch {
			_ = p.TrySend(0, mcd.To(m.From), m.Payload) // what finds no room is lost, and repeated
		}
	}})
	close(ready)
	return p
}

// flood sends another cluster's multicast to a group at line rate, until stop is called.
func flood(l transport.Link, group transport.MAC) (sent func() int64, stop func()) {
	var n atomic.Int64
	end, ended := make(chan struct{}), make(chan struct{})
	payload := message(nil, strings.Repeat("x", 40))
	payload[8] ^= 0xff // another cluster's
	frame := transport.Frame{Dst: group, EtherType: transport.EtherTypeDefault, Payload: payload}
	batch := slices.Repeat([]transport.Frame{frame}, 64)
	go func() {
		defer close(ended)
		for {
			k, _ := l.Send(batch)
			n.Add(int64(k))
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	return n.Load, func() { close(end); <-ended }
}

// Another cluster's multicast at line rate neither stops an endpoint with default settings nor its
// Close: neither that to a group that nobody here has joined, nor that to one which shares its
// address with a group of ours.
func TestKernel_SurvivesForeignMulticast(t *testing.T) {
	for name, group := range map[string]transport.MAC{
		"a group not joined": mcd.GroupMAC(cluster^0x5555, 7), "an address that is joined": mcd.GroupMAC(cluster, 5),
	} {
		t.Run(name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{})
			a, b := onRings(t, bed, mcdtest.Config{})
			if err := b.Join(5); err != nil {
				t.Fatal(err)
			}
			stranger := ringAt(t, bed, 0, "eth0")
			defer stranger.Close()
			sent, stop := flood(stranger, group)
			p, q := port(t, a, 1), answering(t, b, 2)
			for range 50 {
				exchange(t, p, q.Addr(), []byte("still there"))
			}
			for sent() < 50_000 { // many times what the ring holds
				exchange(t, p, q.Addr(), []byte("and still"))
			}
			ended := make(chan error, 1)
			go func() { ended <- b.Close() }()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-limit(t).Done():
				t.Error("Close does not return while strangers send")
			}
			stop()
			if c := b.Counters(); (c.DropCluster > 0) != (group == mcd.GroupMAC(cluster, 5)) || c.DropChecksum != 0 {
				t.Errorf("%+v, want the frames to our address counted as another cluster's", c)
			}
		})
	}
}

// counting is a link that counts its Waits.
type counting struct {
	transport.Link
	waits atomic.Int64
}

func (c *counting) Unwrap() transport.Link { return c.Link }

func (c *counting) Wait(ctx context.Context) error {
	c.waits.Add(1)
	return c.Link.Wait(ctx)
}

// A message to a node that sleeps costs one Wait of its link's own goroutine: the ring's slot is
// given back before the next one, which would find it there.
func TestKernel_OneWaitPerMessage(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	var counted counting
	a, b := onRings(t, bed, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			if node == 0 {
				return l
			}
			counted.Link = l
			return &counted
		},
	})
	p, q := port(t, a, 1), answering(t, b, 2)
	const messages = 300
	for range messages {
		exchange(t, p, q.Addr(), []byte("x"))
	}
	if n := counted.waits.Load(); n > messages*13/10 {
		t.Errorf("%d waits for %d messages", n, messages)
	}
}

// An endpoint says which of its interfaces is down, that it is back, and that it is gone. When the
// last is gone, a wait ends with that reason: one that has begun behind all that, and one that has
// slept in the link through it.
func TestKernel_InterfaceGone(t *testing.T) {
	t.Run("then a Recv", func(t *testing.T) { interfaceGone(t, false) })
	t.Run("under one who sleeps in the link", func(t *testing.T) { interfaceGone(t, true) })
}

func interfaceGone(t *testing.T, asleep bool) {
	bed := testbed.ForTest(t, testbed.Config{})
	a, b := onRings(t, bed, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
	q := port(t, b, 1)
	ended := make(chan error, 1)
	echo := func() {
		buf := make([]byte, 100)
		for {
			n, from, err := q.Recv(context.Background(), buf)
			if err == nil {
				err = q.Send(context.Background(), from, buf[:n])
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}
	if asleep {
		go echo()
		p := port(t, a, 2)
		for range 20 { // it sleeps for each, and so in the link after some
			exchange(t, p, q.Addr(), []byte("x"))
		}
	}
	awaitOf := func(e *mcd.Endpoint, want error) {
		t.Helper()
		for ctx := limit(t); !errors.Is(e.LinkErr(0), want); {
			if ctx.Err() != nil {
				t.Fatalf("LinkErr of node %d: %v, want %v", e.Node(), e.LinkErr(0), want)
			}
			runtime.Gosched()
		}
	}
	await := func(want error) { t.Helper(); awaitOf(b, want) }
	awaitOf(a, nil)
	await(nil)
	if err := bed.Node(1).SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	await(transport.ErrInterfaceDown)
	awaitOf(a, transport.ErrNoCarrier) // its cable ends at the other node
	if err := bed.Node(1).SetUp(0, true); err != nil {
		t.Fatal(err)
	}
	await(nil)
	awaitOf(a, nil)
	if !asleep {
		go echo()
	}
	if err := bed.Node(1).Remove(0); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, mcd.ErrClosed) || !errors.Is(err, transport.ErrNoInterface) || !strings.Contains(err.Error(), "ring eth0") {
			t.Errorf("Recv: %v, want the interface that is gone", err)
		}
	case <-limit(t).Done():
		t.Fatal("Recv waits for an interface that is gone")
	}
	await(transport.ErrNoInterface)
}

// Two interfaces of one address, as VLAN devices and members of a bond have, are two to their ports'
// locks.
func TestKernel_TwoInterfacesOfOneAddress(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{NICs: 2})
	err := bed.Node(0).Do(func() error {
		eth1, err := netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		return netlink.LinkSetHardwareAddr(eth1, testbed.MAC(0, 0).HardwareAddr())
	})
	if err != nil {
		t.Fatal(err)
	}
	x, y := ringAt(t, bed, 0, "eth0"), ringAt(t, bed, 0, "eth1")
	if x.MAC() != y.MAC() {
		t.Fatalf("%v and %v: the test needs one address", x.MAC(), y.MAC())
	}
	e := mcdtest.OpenLinks(t, mcdtest.Config{}, []transport.Link{x, y})[0]
	port(t, e, 1)
}

// Every process that asks for a port in use is told who has it, not the first ones alone.
func TestKernel_PortHasOneOwnerAmongProcesses(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{Nodes: 1})
	open := func(c mcd.ClusterID) *mcd.Endpoint {
		e, err := mcd.Open(mcd.Config{Cluster: c}, ringAt(t, bed, 0, "eth0"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	// Two endpoints on one interface have separate locks, as if they were of two processes.
	first, second, other := open(1), open(1), open(2)
	err := bed.Node(0).Do(func() error { // where the locks are
		p, err := first.OpenPort(7, mcd.PortOptions{})
		if err != nil {
			return err
		}
		for i := range 50 {
			_, err := second.OpenPort(7, mcd.PortOptions{})
			var busy *mcd.PortBusyError
			if !errors.As(err, &busy) || busy.PID != os.Getpid() || busy.Port != 7 {
				t.Fatalf("try %d: %v, want the owner's number, %d", i, err, os.Getpid())
			}
		}
		if _, err := second.OpenPort(8, mcd.PortOptions{}); err != nil {
			t.Errorf("another port: %v", err)
		}
		if _, err := other.OpenPort(7, mcd.PortOptions{}); err != nil {
			t.Errorf("another cluster's port: %v", err)
		}
		if err := p.Close(); err != nil {
			return err
		}
		if _, err := second.OpenPort(7, mcd.PortOptions{}); err != nil {
			t.Errorf("after its owner has closed it: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A link and an endpoint for two EtherTypes would never hear anything: that is refused. An endpoint
// for none in particular takes the link's.
func TestKernel_EtherTypesMustAgree(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	const other transport.EtherType = 0x88b6
	open := func(node int, linkType, configType transport.EtherType) (*mcd.Endpoint, error) {
		l, err := testbed.In(bed.Node(node), func() (*rings.Link, error) {
			return rings.Open("eth0", rings.Config{EtherType: linkType})
		})
		if err != nil {
			t.Fatal(err)
		}
		table := []mcd.Node{{ID: 0, MACs: []transport.MAC{testbed.MAC(0, 0)}}, {ID: 1, MACs: []transport.MAC{testbed.MAC(1, 0)}}}
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(node), Nodes: table, EtherType: configType}, l)
		if err != nil {
			_ = l.Close() // still ours
			return nil, err
		}
		t.Cleanup(func() { _ = e.Close() })
		return e, nil
	}
	for _, types := range [][2]transport.EtherType{{other, transport.EtherTypeDefault}, {0, other}} {
		_, err := open(0, types[0], types[1])
		if err == nil || !strings.Contains(err.Error(), "link eth0") || !strings.Contains(err.Error(), "0x88b6") {
			t.Errorf("link for %v, endpoint for %v: %v", types[0], types[1], err)
		}
	}
	var es []*mcd.Endpoint
	for node, types := range [][2]transport.EtherType{{other, 0}, {transport.EtherTypeAny, other}} {
		e, err := open(node, types[0], types[1])
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, e)
	}
	p, q := port(t, es[0], 1), answering(t, es[1], 1)
	exchange(t, p, q.Addr(), []byte("by another EtherType"))
	if !slices.Equal(es[0].Nodes()[1].MACs, []transport.MAC{es[1].MAC(0)}) {
		t.Error("the nodes are others than the test's")
	}
}
