package barrier_test

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is endpoints on switches in memory, one for each network, each with a barrier service.
type cluster struct {
	eps      []*mcd.Endpoint
	services []*barrier.Service
	faults   [][]*fault.Link // by node and NIC
	cfg      barrier.Config  // of the services
}

// open makes a cluster with faults at each node's links. Waits do not spin: virtual time stands
// still while a goroutine spins.
func open(t testing.TB, size, nics int, cfg fault.Config, seed uint64) *cluster {
	t.Helper()
	return new(cluster).startWith(t, size, nics, cfg, seed)
}

// startWith is open with a cluster's own configuration.
func (c *cluster) startWith(t testing.TB, size, nics int, cfg fault.Config, seed uint64) *cluster {
	t.Helper()
	c.faults = make([][]*fault.Link, size)
	return c.start(t, size, mcdtest.Config{
		NICs:     nics,
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, nic int, l transport.Link) transport.Link {
			lossy, err := fault.New(l, rand.New(rand.NewPCG(seed, uint64(int(node)*nics+nic))), cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.faults[node] = append(c.faults[node], lossy)
			return lossy
		},
	})
}

// bare makes a cluster without faults, whose waits spin.
func bare(t testing.TB, size int) *cluster {
	t.Helper()
	return new(cluster).start(t, size, mcdtest.Config{})
}

func (c *cluster) start(t testing.TB, size int, cfg mcdtest.Config) *cluster {
	t.Helper()
	c.eps = mcdtest.Open(t, size, cfg)
	for _, e := range c.eps {
		c.services = append(c.services, service(t, e, c.cfg))
	}
	t.Cleanup(func() { closeAll(c.services) })
	return c
}

// service opens the barrier service of an endpoint.
func service(t testing.TB, e *mcd.Endpoint, cfg barrier.Config) *barrier.Service {
	t.Helper()
	s, err := barrier.Open(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// groups makes the same group on each node.
func (c *cluster) groups(t testing.TB, cfg barrier.GroupConfig) (all []*barrier.Group) {
	t.Helper()
	for _, s := range c.services {
		all = append(all, group(t, s, cfg))
	}
	return all
}

func group(t testing.TB, s *barrier.Service, cfg barrier.GroupConfig) *barrier.Group {
	t.Helper()
	g, err := s.Group(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// arrive enters a barrier.
func arrive(t testing.TB, g *barrier.Group, o barrier.Options) barrier.Ticket {
	t.Helper()
	ticket, err := g.ArriveWith(o)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// closeAll closes groups or services at the same time.
func closeAll[C io.Closer](all []C) {
	var closing sync.WaitGroup
	for _, c := range all {
		closing.Go(func() { _ = c.Close() })
	}
	closing.Wait()
}

// each runs f for each group at the same time, and returns their errors.
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

// limit is a context that ends a hanging wait; in virtual time it costs nothing.
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
	"shuffle", "tree:2", "tree:3", "treetree:2", "heap:2", "concurrent", "star", "hier:3", "repeated:3:star:tree:2", "chassis",
	"chassis-repeated", "auto",
}
