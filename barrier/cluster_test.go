package barrier_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nodes is a cluster in memory: a switch per network, and faults at each node's links.
type nodes struct {
	eps    []*mcd.Endpoint
	faults [][]*fault.Link // by node and NIC
}

// open makes a cluster. Waits do not spin: virtual time stands still while somebody does.
func open(t testing.TB, size, nics int, cfg fault.Config, seed uint64) *nodes {
	t.Helper()
	n := &nodes{faults: make([][]*fault.Link, size)}
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	table, links := make([]mcd.Node, size), make([][]transport.Link, size)
	for nic := range nics {
		sw := f.AddSwitch("")
		for k := range size {
			l, err := f.Attach(sw, fabric.Station{})
			if err != nil {
				t.Fatal(err)
			}
			lossy, err := fault.New(l, rand.New(rand.NewPCG(seed, uint64(k*nics+nic))), cfg)
			if err != nil {
				t.Fatal(err)
			}
			n.faults[k] = append(n.faults[k], lossy)
			links[k] = append(links[k], lossy)
			table[k].ID = mcd.NodeID(k)
			table[k].MACs = append(table[k].MACs, l.MAC())
		}
	}
	for k := range size {
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Spin: -1}, links[k]...)
		if err != nil {
			t.Fatal(err)
		}
		n.eps = append(n.eps, e)
		t.Cleanup(func() { _ = e.Close() })
	}
	return n
}

// bare makes a cluster without faults, whose waits spin.
func bare(t testing.TB, size int) *nodes {
	t.Helper()
	links, err := fabric.Links(size)
	if err != nil {
		t.Fatal(err)
	}
	n, table := &nodes{}, make([]mcd.Node, size)
	for k, l := range links {
		table[k] = mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}}
	}
	for k, l := range links {
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table}, l)
		if err != nil {
			t.Fatal(err)
		}
		n.eps = append(n.eps, e)
		t.Cleanup(func() { _ = e.Close() })
	}
	return n
}

// groups makes the same group on each node.
func (n *nodes) groups(t testing.TB, cfg barrier.Config) []*barrier.Group {
	t.Helper()
	var all []*barrier.Group
	for _, e := range n.eps {
		g, err := barrier.NewGroup(e, cfg)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	t.Cleanup(func() { closeAll(all) })
	return all
}

func closeAll(all []*barrier.Group) {
	var closing sync.WaitGroup
	for _, g := range all {
		closing.Go(func() { _ = g.Close() })
	}
	closing.Wait()
}

// each runs f for each group at the same time, and returns what they return.
func each(all []*barrier.Group, f func(k int, g *barrier.Group) error) []error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for k, g := range all {
		running.Go(func() { errs[k] = f(k, g) })
	}
	running.Wait()
	return errs
}

func expectNone(t *testing.T, errs []error) {
	t.Helper()
	for k, err := range errs {
		if err != nil {
			t.Errorf("node %d: %v", k, err)
		}
	}
}

// limit ends a wait that hangs; in virtual time it costs nothing.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// shorter is limit with another time.
func shorter(t testing.TB, ctx context.Context, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(ctx, d)
	t.Cleanup(cancel)
	return ctx
}

func parse(t testing.TB, name string) schedule.Algorithm {
	t.Helper()
	a, err := schedule.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var algorithms = []string{
	"shuffle", "tree:2", "tree:3", "treetree:2", "concurrent", "star", "hier:3", "repeated:3:star:tree:2", "chassis",
	"chassis-repeated", "auto",
}
