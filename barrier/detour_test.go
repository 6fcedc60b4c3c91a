package barrier_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// byNode routes each node of a cluster by a VID of its own: 20 and its number.
type byNode struct{}

func (byNode) Route(dst transport.MAC) transport.OptionalTag { return vid(20 + transport.VID(dst[5])) }

// probed runs a barrier of node 0 in which node 1 is silent, and returns by NIC the tags by which frames
// went to it in the first millisecond of its doubts.
func probed(t *testing.T, size, nics int, detours ...transport.OptionalTag) (first [][]transport.OptionalTag) {
	var mu sync.Mutex
	first = make([][]transport.OptionalTag, nics)
	var macs []transport.MAC // of node 1
	var at time.Time
	c := &cluster{cfg: barrier.Config{Detours: detours}}
	c.start(t, size, mcdtest.Config{
		NICs:     nics,
		Endpoint: mcd.Config{Spin: -1, Router: byNode{}},
		Wrap: func(node mcd.NodeID, nic int, l transport.Link) transport.Link {
			return &filter{l, func(f *transport.Frame) bool {
				mu.Lock()
				defer mu.Unlock()
				route := byNode{}.Route(f.Dst)
				if node != 0 || !slices.Contains(macs, f.Dst) || f.OptionalTag == route {
					return false
				}
				if at.IsZero() {
					at = time.Now()
				}
				if time.Since(at) < time.Millisecond {
					first[nic] = append(first[nic], f.OptionalTag)
				}
				return true
			}}
		},
	})
	mu.Lock()
	for nic := range nics {
		macs = append(macs, c.eps[1].MAC(nic))
	}
	mu.Unlock()
	_ = c.eps[1].Close()
	cfg := barrier.GroupConfig{Algorithm: schedule.Concurrent(), PeerTimeout: time.Second}
	downOf(t, group(t, c.services[0], cfg).Barrier(limit(t)))
	mu.Lock()
	defer mu.Unlock()
	return first
}

// A member that is silent is asked by all other tags that are known, on each network: those by which other
// members are reached, and those of Config.Detours, each once. By its route it is asked anyway.
func TestDetours_Tags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const one = 22 // the VID of node 1 on the first network, and another one on the second
		got := probed(t, 3, 2, vid(9), vid(one), vid(9))
		want := [][]transport.OptionalTag{{vid(9), vid(23)}, {vid(9), vid(one), vid(26)}}
		for nic := range want {
			slices.SortFunc(got[nic], func(a, b transport.OptionalTag) int { return int(a.Tag.VID) - int(b.Tag.VID) })
			if !slices.Equal(got[nic], want[nic]) {
				t.Errorf("NIC %d: asked by %v, want %v", nic, got[nic], want[nic])
			}
		}
	})
}

// A member is asked by eight tags at a time at most, each once.
func TestDetours_AtMostEight(t *testing.T) {
	for count, want := range map[int]int{7: 7, 8: 8, 9: 8, 20: 8} {
		synctest.Test(t, func(t *testing.T) {
			var detours []transport.OptionalTag
			for k := range count {
				detours = append(detours, vid(transport.VID(100+k)))
			}
			got := probed(t, 2, 1, detours...)[0]
			if len(got) != want {
				t.Errorf("%d detours: asked by %d at a time, want %d", count, len(got), want)
			}
			seen := map[transport.OptionalTag]bool{}
			for _, tag := range got {
				if seen[tag] || !slices.Contains(detours, tag) {
					t.Errorf("%d detours: asked by %v at a time", count, got)
				}
				seen[tag] = true
			}
		})
	}
}

// A member that answers is not asked by other paths, however late it is: here one that has used a mask in a
// later group of the same ID alone.
func TestDetours_NotOfWhoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := &cluster{cfg: barrier.Config{Detours: []transport.OptionalTag{vid(9)}}}
		c.start(t, 3, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
				return &filter{l, func(f *transport.Frame) bool {
					if f.OptionalTag == vid(9) {
						asked.Add(1)
					}
					return false
				}}
			},
		})
		cfg := barrier.GroupConfig{PeerTimeout: time.Second}
		first, second := c.groups(t, cfg), c.groups(t, cfg)
		o := barrier.Options{Members: barrier.MaskOf(0, 1)}
		arrive(t, second[1], o)
		ticket := arrive(t, first[0], o)
		time.Sleep(5 * cfg.PeerTimeout)
		arrive(t, first[1], o)
		if err := ticket.Wait(limit(t)); err != nil || asked.Load() > 0 {
			t.Errorf("%v; asked %d times by other paths", err, asked.Load())
		}
	})
}

// A member is asked by other paths not more often than 40 times in a peer timeout, though eight barriers
// wait for it, whose nacks have instants of their own.
func TestDetours_Pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []time.Time
		c := &cluster{cfg: barrier.Config{Detours: []transport.OptionalTag{vid(9)}}}
		c.start(t, 3, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
				return &filter{l, func(f *transport.Frame) bool {
					mu.Lock()
					defer mu.Unlock()
					if f.OptionalTag == vid(9) {
						asked = append(asked, time.Now())
					}
					return false
				}}
			},
		})
		_ = c.eps[1].Close()
		silent := group(t, c.services[0], barrier.GroupConfig{Members: barrier.MaskOf(0, 1), PeerTimeout: time.Second})
		for number := range uint8(7) {
			arrive(t, silent, barrier.Options{Number: 1 + number})
			time.Sleep(6 * time.Millisecond)
		}
		downOf(t, silent.Barrier(limit(t)))
		mu.Lock()
		defer mu.Unlock()
		if len(asked) < 15 {
			t.Errorf("asked %d times in half a second, want nearly 20", len(asked))
		}
		for k := 1; k < len(asked); k++ {
			if pause := asked[k].Sub(asked[k-1]); pause < time.Second/40 {
				t.Fatalf("asked again after %v", pause)
			}
		}
	})
}

// A member that answers by another path than its route counts as alive for a while. One that is asked by
// its route does not, nor one that asks, and no answer counts for another member.
func TestDetours_Excuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []mcd.NodeID // of whom the last one is silent
		by, to  int          // who sends probes, and to whom
		tag     transport.OptionalTag
		want    barrier.Reason
	}{
		{"an answer by another path", []mcd.NodeID{0, 1}, 0, 1, vid(7), barrier.Unreachable},
		{"an answer by the route", []mcd.NodeID{0, 1}, 0, 1, transport.Untagged, barrier.Silent},
		{"a question by another path", []mcd.NodeID{0, 1}, 1, 0, vid(7), barrier.Silent},
		{"an answer of a node that is no member", []mcd.NodeID{0, 2}, 0, 1, vid(7), barrier.Silent},
	} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) // node 0 alone has barriers
			s := service(t, eps[0], barrier.Config{})
			defer s.Close()
			ended := make(chan struct{})
			var probing sync.WaitGroup
			probing.Go(func() {
				for every := time.NewTicker(50 * time.Millisecond); ; {
					select {
					case <-every.C:
						path := mcd.Path{Node: mcd.NodeID(c.to), OptionalTag: c.tag}
						if _, err := eps[c.by].TryProbe(path, mcd.ProbeOptions{}); err != nil {
							t.Error(err)
						}
					case <-ended:
						every.Stop()
						return
					}
				}
			})
			g := group(t, s, barrier.GroupConfig{Members: barrier.MaskOf(c.members...), PeerTimeout: time.Second})
			if down := downOf(t, g.Barrier(limit(t))); !slices.Equal(down.Reasons, []barrier.Reason{c.want}) {
				t.Errorf("%s: %v, want %v", c.name, down, c.want)
			}
			close(ended)
			probing.Wait()
		})
	}
}

// countingRouter is byNode, and counts how often it is asked.
type countingRouter struct {
	byNode
	asked atomic.Int64
}

func (r *countingRouter) Route(dst transport.MAC) transport.OptionalTag {
	r.asked.Add(1)
	return r.byNode.Route(dst)
}

// Where all members are silent at once, as behind a switch that has failed, other paths are looked for
// by the routes of all members once, and not once for each of them: of 4,096 members that took 4 s,
// in which the node received nothing.
func TestDetours_OfThousands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 300
		router := new(countingRouter)
		eps := mcdtest.Open(t, 1, mcdtest.Config{Endpoint: mcd.Config{Spin: -1, Router: router}})
		nodes := eps[0].Nodes()
		for k := 1; k < size; k++ {
			nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{{2, 9, 0, 0, byte(k >> 8), byte(k)}}})
		}
		if err := eps[0].SetNodes(nodes); err != nil {
			t.Fatal(err)
		}
		s := service(t, eps[0], barrier.Config{})
		defer s.Close()
		cfg := barrier.GroupConfig{Algorithm: schedule.Concurrent(), PeerTimeout: time.Second}
		downOf(t, group(t, s, cfg).Barrier(limit(t)))
		if asked := router.asked.Load(); asked > 200*size {
			t.Errorf("the router was asked %d times for %d members", asked, size)
		}
	})
}
