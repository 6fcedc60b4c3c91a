package rawnet_test

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(inBed{m}) }

// inBed runs the tests where network namespaces can be had.
type inBed struct{ *testing.M }

func (m inBed) Run() int { return testbed.Main(m.M) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster is nodes in memory, with faults at their links.
type cluster struct {
	eps    []*mcd.Endpoint
	nets   []*rawnet.Net
	faults []*fault.Link
}

// options of a cluster. The zero value is for a synctest bubble.
type options struct {
	nodes int // zero is 2
	spin  time.Duration
	fault fault.Config
	wrap  func(node mcd.NodeID, inner transport.Link) transport.Link // beneath the faults
	bare  bool                                                       // without faults: links allocate nothing
	seed  uint64
	cfg   rawnet.Config
}

// open makes a cluster, until the test ends.
func open(t testing.TB, o options) *cluster {
	t.Helper()
	c := &cluster{}
	if o.nodes == 0 {
		o.nodes = 2
	}
	if o.spin == 0 {
		o.spin = -1
	}
	cfg := mcdtest.Config{Endpoint: mcd.Config{Spin: o.spin}}
	if !o.bare {
		cfg.Wrap = func(node mcd.NodeID, _ int, inner transport.Link) transport.Link {
			if o.wrap != nil {
				inner = o.wrap(node, inner)
			}
			f, err := fault.New(inner, rand.New(rand.NewPCG(o.seed, uint64(node))), o.fault)
			must(t, err)
			c.faults = append(c.faults, f)
			return f
		}
	}
	c.eps = mcdtest.Open(t, o.nodes, cfg)
	for _, ep := range c.eps {
		n, err := rawnet.Open(ep, o.cfg)
		must(t, err)
		c.nets = append(c.nets, n)
	}
	t.Cleanup(func() {
		for _, n := range c.nets {
			_ = n.Close()
		}
	})
	return c
}

// pair makes a connection from node 0 to a service of node 1.
func (c *cluster) pair(t testing.TB, service string) (dialed, accepted *rawnet.Conn) {
	t.Helper()
	l, err := c.nets[1].Listen(service)
	must(t, err)
	a, err := c.nets[0].Dial("rawlane", "1:"+service)
	must(t, err)
	b, err := l.Accept()
	must(t, err)
	must(t, l.Close())
	return a.(*rawnet.Conn), b.(*rawnet.Conn)
}

func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// The test suite of golang.org/x/net for connections, over a network without faults and one that
// loses, duplicates and reorders frames.
func TestConn_NetTest(t *testing.T) {
	for name, f := range map[string]fault.Config{
		"fabric":        {},
		"fabric, fault": {Loss: 0.02, Duplicate: 0.02, Reorder: 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, options{spin: 50 * time.Microsecond, fault: f, seed: 1})
			testConns(t, c.nets[0], c.nets[1])
		})
	}
}

// testConns runs nettest's suite between two nodes, the second of which is node 1.
func testConns(t *testing.T, from, to *rawnet.Net) {
	t.Helper()
	nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
		l, err := to.Listen("nettest")
		if err != nil {
			return nil, nil, nil, err
		}
		defer l.Close()
		if a, err = from.Dial("rawlane", "1:nettest"); err == nil {
			b, err = l.Accept()
		}
		return a, b, func() { _ = a.Close(); _ = b.Close() }, err
	})
}
