package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// segment is a switch, or several, that nodes with a NIC on each are attached to.
type segment struct {
	t        *testing.T
	f        *fabric.Fabric
	switches []*fabric.Switch
}

func newSegment(t *testing.T, networks int) *segment {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := &segment{t: t, f: f}
	for range networks {
		s.switches = append(s.switches, f.AddSwitch(""))
	}
	return s
}

func (s *segment) links() (links []transport.Link) {
	s.t.Helper()
	for _, sw := range s.switches {
		l, err := s.f.Attach(sw, fabric.Station{})
		if err != nil {
			s.t.Fatal(err)
		}
		links = append(links, l)
	}
	return links
}

// node attaches a node. It does not spin: virtual time stands still while a goroutine spins.
func (s *segment) node(cfg mcd.Config, links ...transport.Link) *mcd.Endpoint {
	s.t.Helper()
	if links == nil {
		links = s.links()
	}
	cfg.Spin = -1
	e, err := mcd.Open(cfg, links...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = e.Close() })
	return e
}

// outcome of a Join.
type outcome struct {
	m   *cluster.Membership
	err error
}

// joinAll has nodes join at once, and returns when all have returned.
func joinAll(nodes []*mcd.Endpoint, size int, timeout time.Duration) []outcome {
	results := make([]outcome, len(nodes))
	var joining sync.WaitGroup
	for i, e := range nodes {
		joining.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			m, err := cluster.Join(ctx, e, cluster.Config{Nodes: size, Name: fmt.Sprintf("host%d", i)})
			results[i] = outcome{m, err}
		})
	}
	joining.Wait()
	return results
}

// cloned is a link of two machines with one address.
type cloned struct{ transport.Link }

func (cloned) MAC() transport.MAC { return transport.MAC{2, 0, 0, 0, 0, 7} }

func (l cloned) Poll(frames []transport.Frame) (int, error) {
	n, err := l.Link.Poll(frames)
	for i := range frames[:n] {
		frames[i].Src = l.MAC()
	}
	return n, err
}

// Who waits in vain is told of messages to the port that are no announcements, as those of another
// version are.
func TestIncomplete_TellsOfOtherMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		e, other := s.node(mcd.Config{}), s.node(mcd.Config{Node: 1})
		p, err := other.OpenPort(1, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sent := time.AfterFunc(time.Second, func() {
			for range 3 {
				if err := p.TrySend(0, mcd.ToAll(cluster.DiscoveryPort), []byte{99}); err != nil {
					t.Error(err)
				}
			}
		})
		defer sent.Stop()
		r := joinAll([]*mcd.Endpoint{e}, 2, time.Minute)[0]
		var incomplete *cluster.IncompleteError
		if !errors.As(r.err, &incomplete) || incomplete.Malformed != 3 ||
			!strings.Contains(r.err.Error(), "; messages to port 255 that were no announcements: 3 (bring all nodes to one version)") {
			t.Errorf("%v", r.err)
		}
	})
}

// Two machines of one number and one address, as clones have them, do not join, and are told what to
// do.
func TestClonesDoNotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		var errs [2]error
		var joining sync.WaitGroup
		for k := range errs {
			e := s.node(mcd.Config{Node: 1}, cloned{s.links()[0]})
			joining.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, errs[k] = cluster.Join(ctx, e, cluster.Config{Nodes: 2, Place: mcd.Place{Host: uint64(k + 1), Cores: 1, Usable: 1}})
			})
		}
		joining.Wait()
		for k, err := range errs {
			if !errors.Is(err, mcd.ErrConflict) || !strings.Contains(err.Error(), "clone of the other? (give each a MAC") {
				t.Errorf("clone %d: %v", k, err)
			}
		}
	})
}

func TestAllMeet(t *testing.T) {
	for _, c := range []struct{ nodes, networks int }{{1, 1}, {2, 1}, {3, 2}, {32, 1}} {
		t.Run(fmt.Sprintf("%d nodes on %d networks", c.nodes, c.networks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSegment(t, c.networks)
				var nodes []*mcd.Endpoint
				var want []mcd.Node
				for k := range c.nodes {
					e := s.node(mcd.Config{Node: mcd.NodeID(k)})
					nodes = append(nodes, e)
					n := mcd.Node{ID: mcd.NodeID(k)}
					for nic := range c.networks {
						n.MACs = append(n.MACs, e.MAC(nic))
					}
					want = append(want, n)
				}
				for k, r := range joinAll(nodes, c.nodes, time.Minute) {
					if r.err != nil {
						t.Fatalf("node %d: %v", k, r.err)
					}
					if got := r.m.Nodes(); fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(nodes[k].Nodes()) != fmt.Sprint(want) {
						t.Errorf("node %d: %v, want %v", k, got, want)
					}
					for _, n := range nodes[k].Nodes() {
						if n.Place != nodes[k].Place() || n.Place.Path != transport.InProcess || n.Place.Cores == 0 {
							t.Errorf("node %d: node %d is at %v, want %v", k, n.ID, n.Place, nodes[k].Place())
						}
					}
					for _, p := range r.m.Peers() {
						if p.Name != fmt.Sprintf("host%d", p.ID) {
							t.Errorf("node %d knows node %d as %q", k, p.ID, p.Name)
						}
					}
				}
			})
		})
	}
}

// A node that comes when the others have met is answered by them.
func TestLateNodeIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		first := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1})}
		var all sync.WaitGroup
		all.Go(func() {
			for k, r := range joinAll(first, 3, time.Hour) {
				if r.err != nil {
					t.Errorf("node %d: %v", k, r.err)
				}
			}
		})
		time.Sleep(time.Minute) // of virtual time
		late := s.node(mcd.Config{Node: 2})
		start := time.Now()
		if r := joinAll([]*mcd.Endpoint{late}, 3, time.Minute)[0]; r.err != nil {
			t.Error(r.err)
		}
		all.Wait()
		if took := time.Since(start); took > 20*time.Millisecond {
			t.Errorf("%v passed from the start of the last node to when all had met", took)
		}
	})
}

// Two nodes with one number: both, and a node that hears them, report it with both addresses.
func TestTwoNodesOfOneNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1}), s.node(mcd.Config{Node: 1})}
		var third outcome
		var joined sync.WaitGroup
		joined.Go(func() { third = joinAll(nodes[:1], 3, time.Minute)[0] })
		synctest.Wait() // it listens: both end as soon as they have heard each other
		results := joinAll(nodes[1:], 3, time.Minute)
		joined.Wait()
		for k, r := range results {
			var c *mcd.ConflictError
			if !errors.Is(r.err, mcd.ErrConflict) || !errors.As(r.err, &c) {
				t.Fatalf("node %d: %v", k, r.err)
			}
			for _, e := range nodes[1:] {
				if !strings.Contains(r.err.Error(), e.MAC(0).String()) {
					t.Errorf("%q does not name %v", r.err, e.MAC(0))
				}
			}
		}
		if !errors.Is(third.err, mcd.ErrConflict) {
			t.Errorf("the third: %v", third.err)
		}
	})
}

// Two nodes of one number in a cluster that needs only one of them do not both join.
func TestTwoNodesOfOneNumberWhereNobodyIsMissing(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond, 6 * time.Millisecond, time.Second} {
		t.Run(fmt.Sprintf("the second comes %v later", delay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSegment(t, 1)
				nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1})}
				var first []outcome
				var all sync.WaitGroup
				all.Go(func() { first = joinAll(nodes, 2, time.Minute) })
				time.Sleep(delay)
				second := joinAll([]*mcd.Endpoint{s.node(mcd.Config{Node: 1})}, 2, time.Minute)[0]
				all.Wait()
				if !errors.Is(first[1].err, mcd.ErrConflict) && !errors.Is(second.err, mcd.ErrConflict) {
					t.Errorf("the first node 1: %v; the second: %v", first[1].err, second.err)
				}
			})
		})
	}
}

// A context that ends when all were heard, and before it is certain that none are in conflict.
func TestContextEndsWhileSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1})}
		for k, r := range joinAll(nodes, 2, 3*time.Millisecond) {
			var e *cluster.IncompleteError
			if !errors.Is(r.err, context.DeadlineExceeded) || !errors.As(r.err, &e) || len(e.Missing) != 0 || !strings.Contains(r.err.Error(), "all are there") {
				t.Errorf("node %d: %v", k, r.err)
			}
		}
	})
}

func TestMissingNodesAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 2})}
		for k, r := range joinAll(nodes, 4, 10*time.Second) {
			var e *cluster.IncompleteError
			if !errors.Is(r.err, cluster.ErrIncomplete) || !errors.Is(r.err, context.DeadlineExceeded) || !errors.As(r.err, &e) {
				t.Fatalf("node %d: %v", k, r.err)
			}
			other := 2 - 2*k
			if !slices.Equal(e.Missing, []mcd.NodeID{1, 3}) || len(e.Heard) != 1 || e.Heard[0].ID != mcd.NodeID(other) {
				t.Errorf("node %d: %+v", k, e)
			}
			if text := r.err.Error(); !strings.Contains(text, "missing: 1, 3") || !strings.Contains(text, e.Heard[0].MACs[0].String()) {
				t.Errorf("text: %s", text)
			}
		}
	})
}

func TestOtherIdeasOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		a, b := s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1})
		var both sync.WaitGroup
		for e, size := range map[*mcd.Endpoint]int{a: 2, b: 3} {
			both.Go(func() {
				r := joinAll([]*mcd.Endpoint{e}, size, time.Minute)[0]
				if !errors.Is(r.err, cluster.ErrMismatch) {
					t.Errorf("size %d: %v", size, r.err)
				}
			})
		}
		both.Wait()
	})
}

// A node that expects another cluster and ends before it has said so often enough is what a node
// that hears no more of it names, rather than cables.
func TestOtherIdeasOfTheCluster_ItsNodeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		a, b := s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1})
		var both sync.WaitGroup
		both.Go(func() { _ = joinAll([]*mcd.Endpoint{a}, 2, 50*time.Millisecond) })
		both.Go(func() {
			r := joinAll([]*mcd.Endpoint{b}, 3, 5*time.Second)[0]
			var e *cluster.IncompleteError
			if !errors.As(r.err, &e) || !errors.Is(r.err, cluster.ErrMismatch) || e.Mismatch.Other.ID != 0 {
				t.Errorf("%v, want what node 0 expects", r.err)
				return
			}
			if text := r.err.Error(); !strings.Contains(text, "it expects 2 nodes (give all the same number)") {
				t.Errorf("text: %s", text)
			}
		})
		both.Wait()
	})
}

// Clusters on one segment do not meet each other.
func TestClustersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		var nodes []*mcd.Endpoint
		for c := range 3 {
			for k := range 2 {
				nodes = append(nodes, s.node(mcd.Config{Cluster: mcd.ClusterID(c + 1), Node: mcd.NodeID(k)}))
			}
		}
		for i, r := range joinAll(nodes, 2, time.Minute) {
			if r.err != nil {
				t.Fatal(r.err)
			}
			if peer := r.m.Peers()[0].MACs[0]; peer != nodes[i^1].MAC(0) {
				t.Errorf("%d met %v", i, peer)
			}
		}
	})
}

// A peer of another wire version is named when the meeting fails.
func TestOtherWireVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		old := s.links()[0]
		defer old.Close()
		e := s.node(mcd.Config{Node: 0})
		frame := transport.Frame{Dst: transport.Broadcast, EtherType: transport.EtherTypeDefault, Payload: append([]byte{0x33}, make([]byte, 60)...)}
		if _, err := old.Send([]transport.Frame{frame}); err != nil {
			t.Fatal(err)
		}
		r := joinAll([]*mcd.Endpoint{e}, 2, time.Second)[0]
		if !errors.Is(r.err, cluster.ErrVersion) || !strings.Contains(r.err.Error(), old.MAC().String()+" uses wire version 3") {
			t.Error(r.err)
		}
	})
}

// Nodes of which one has a key, or another one, do not meet, and each says why.
func TestOtherKeys(t *testing.T) {
	key := func(n byte) *keyring.Ring { return &keyring.Ring{Keys: []keyring.Key{{n}}} }
	for _, c := range []struct {
		name string
		keys [2]*keyring.Ring
		want [2]string
	}{
		{"one has none", [2]*keyring.Ring{key(1), nil},
			[2]string{"has no key, and this node has one", "has a key, and this node has none"}},
		{"they differ", [2]*keyring.Ring{key(1), key(2)}, [2]string{"has another key", "has another key"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSegment(t, 1)
			nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0, Keys: c.keys[0]}), s.node(mcd.Config{Node: 1, Keys: c.keys[1]})}
			for k, r := range joinAll(nodes, 2, time.Second) {
				if !errors.Is(r.err, mcd.ErrKeyMismatch) || !errors.Is(r.err, cluster.ErrIncomplete) ||
					!strings.Contains(r.err.Error(), nodes[1-k].MAC(0).String()+" "+c.want[k]) {
					t.Errorf("%s: node %d: %v", c.name, k, r.err)
				}
			}
		})
	}
}

// With one key they meet, and exchange.
func TestSameKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 2)
		keys := &keyring.Ring{Keys: []keyring.Key{{1}}, Encrypt: true}
		var nodes []*mcd.Endpoint
		for k := range 5 {
			nodes = append(nodes, s.node(mcd.Config{Node: mcd.NodeID(k), Keys: keys}))
		}
		for _, r := range joinAll(nodes, len(nodes), time.Minute) {
			if r.err != nil {
				t.Fatal(r.err)
			}
		}
	})
}

func TestJoinRefusesBadNumbers(t *testing.T) {
	s := newSegment(t, 1)
	e := s.node(mcd.Config{Node: 2})
	for _, size := range []int{0, 2, cluster.MaxNodes + 1} {
		if _, err := cluster.Join(context.Background(), e, cluster.Config{Nodes: size}); err == nil {
			t.Errorf("size %d: no error", size)
		}
	}
}

// resting is a link whose interface is down for a while.
type resting struct {
	transport.Link
	until time.Time
}

func (l *resting) Send(frames []transport.Frame) (int, error) {
	if time.Now().Before(l.until) {
		return 0, transport.ErrInterfaceDown
	}
	return l.Link.Send(frames)
}

// An interface that is down for a moment holds discovery up, and does not end it.
func TestJoin_WaitsForAnInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		down := &resting{Link: s.links()[0], until: time.Now().Add(3 * time.Second)}
		nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}, down), s.node(mcd.Config{Node: 1})}
		for i, r := range joinAll(nodes, 2, time.Minute) {
			if r.err != nil {
				t.Errorf("node %d: %v", i, r.err)
			}
		}
	})
}

// More links than an announcement has room for are refused with the reason, and not after a time.
func TestJoin_TooManyLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newSegment(t, 17).node(mcd.Config{})
		_, err := cluster.Join(t.Context(), e, cluster.Config{Nodes: 2})
		if err == nil || !strings.Contains(err.Error(), "17 links (want at most 16") {
			t.Error(err)
		}
	})
}

// The tables of a Membership are the caller's: who changes one changes no other.
func TestMembership_TablesAreTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1})}
		m := joinAll(nodes, 2, time.Minute)[0].m
		m.Nodes()[1].MACs[0][0] = 0xee
		m.Peers()[0].MACs[0][1] = 0xdd
		want := nodes[1].MAC(0)
		if a, b, c := m.Nodes()[1].MACs[0], m.Peers()[0].MACs[0], nodes[0].Nodes()[1].MACs[0]; a != want || b != want || c != want {
			t.Errorf("%v, %v and %v, want %v", a, b, c, want)
		}
	})
}

// The port is free again when a Join has failed, and when a Membership is closed.
func TestPortIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		e := s.node(mcd.Config{Node: 0})
		for range 2 {
			if r := joinAll([]*mcd.Endpoint{e}, 2, time.Second)[0]; !errors.Is(r.err, cluster.ErrIncomplete) {
				t.Fatal(r.err)
			}
		}
		for range 2 {
			r := joinAll([]*mcd.Endpoint{e}, 1, time.Second)[0]
			if r.err != nil {
				t.Fatal(r.err)
			}
			if err := r.m.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Nodes with as many NICs each that do not meet in order are told what may be wrong, and not how many
// they have.
func TestJoin_NetworksInAnotherOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 2)
		crossed := s.links()
		slices.Reverse(crossed)
		nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1}, crossed...)}
		for k, r := range joinAll(nodes, 2, time.Minute) {
			const want = "cabled in another order, or links of two networks share a segment"
			if !errors.Is(r.err, cluster.ErrMismatch) || !strings.Contains(r.err.Error(), want) || strings.Contains(r.err.Error(), "2 NICs") {
				t.Errorf("node %d: %v, want %q", k, r.err, want)
			}
		}
	})
}
