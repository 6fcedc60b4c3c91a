package barrier_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/vlan"
)

// downOf returns the error's facts.
func downOf(t *testing.T, err error) *barrier.NodeDownError {
	t.Helper()
	var down *barrier.NodeDownError
	if !errors.As(err, &down) || !errors.Is(err, barrier.ErrNodeDown) {
		t.Fatalf("%v, want ErrNodeDown", err)
	}
	return down
}

// Several nodes die at once, with any algorithm and much loss. All survivors are told the same
// nodes, Without gives them the same group, and they go on.
func TestSeveralDieAtOnce(t *testing.T) {
	seed := rand.Uint64()
	for _, name := range algorithms {
		for _, dead := range [][]int{{1, 2}, {0, 6}, {0, 1, 3, 5}, {1, 2, 3, 4, 5, 6}} {
			t.Run(fmt.Sprintf("%s, nodes %v", name, dead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := open(t, 7, 1, fault.Config{Loss: 0.2}, seed)
					all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, name), PeerTimeout: time.Second})
					stages(t, all, 3, func(int, int) {})
					want := []mcd.NodeID{}
					survivors := []*barrier.Group{}
					for k, g := range all {
						if slices.Contains(dead, k) {
							want = append(want, mcd.NodeID(k))
							_ = c.eps[k].Close() // without a word
						} else {
							survivors = append(survivors, g)
						}
					}
					rest := make([]*barrier.Group, len(survivors))
					begun := time.Now()
					expectNone(t, each(survivors, func(k int, g *barrier.Group) (err error) {
						down := downOf(t, g.Barrier(limit(t)))
						if !slices.Equal(down.Nodes, want) {
							t.Errorf("seed %d, survivor %d: %v, want nodes %v", seed, k, down, want)
						}
						rest[k], err = g.Without()
						return errors.Join(err, g.Close())
					}))
					if took := time.Since(begun); took > 5*time.Second {
						t.Errorf("seed %d: it took %v, more than five timeouts", seed, took)
					}
					stages(t, rest, 3, func(int, int) {})
					closeAll(rest)
				})
			})
		}
	}
}

// A node dies while the others agree on another one.
func TestANodeDiesDuringTheAgreement(t *testing.T) {
	for after := 900 * time.Millisecond; after < 2100*time.Millisecond; after += 50 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 5, 1, fault.Config{}, 0)
			all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Second})
			_ = c.eps[1].Close()
			time.AfterFunc(after, func() { _ = c.eps[4].Close() })
			survivors := []*barrier.Group{all[0], all[2], all[3]}
			var first []mcd.NodeID
			for k, err := range each(survivors, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
				down := downOf(t, err)
				if k == 0 {
					first = down.Nodes
				}
				if !slices.Equal(down.Nodes, first) || !slices.Contains(first, 1) {
					t.Errorf("the second death %v after the first: survivor %d was told %v, the first one %v", after, k, down.Nodes, first)
				}
			}
		})
	}
}

// A node whose process stands still for less than the peer timeout is not taken for gone, at any
// time; one that stands still for longer is, and is told so when it goes on.
func TestAPausedNode(t *testing.T) {
	for _, c := range []struct {
		pause    time.Duration
		excluded bool
	}{{500 * time.Millisecond, false}, {900 * time.Millisecond, false}, {3 * time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			cl := open(t, 4, 1, fault.Config{}, 0)
			all := cl.groups(t, barrier.GroupConfig{PeerTimeout: time.Second})
			stages(t, all, 3, func(int, int) {})
			cl.faults[2][0].Cut(true)
			var on atomic.Bool
			time.AfterFunc(c.pause, func() {
				cl.faults[2][0].Cut(false)
				on.Store(true)
			})
			for k, err := range each(all, func(k int, g *barrier.Group) error {
				if k == 2 {
					time.Sleep(c.pause) // it computes nothing meanwhile
				}
				return g.Barrier(limit(t))
			}) {
				if !c.excluded {
					if err != nil {
						t.Errorf("pause %v, node %d: %v", c.pause, k, err)
					}
					continue
				}
				down := downOf(t, err)
				_, without := all[k].Without()
				if !slices.Equal(down.Nodes, []mcd.NodeID{2}) || down.Excluded != (k == 2) ||
					errors.Is(err, barrier.ErrExcluded) != (k == 2) || errors.Is(without, barrier.ErrExcluded) != (k == 2) {
					t.Errorf("pause %v, node %d: %v; without: %v", c.pause, k, err, without)
				}
				if k == 2 && !strings.Contains(err.Error(), "this node is among them") {
					t.Errorf("the node that stood still is told %q", err)
				}
			}
			if !on.Load() {
				t.Error("the barriers ended before the pause")
			}
		})
	}
}

// A network falls into two parts. Without a quorum both go on, each without the other; with one of
// more than half, the smaller part is told that it has none.
func TestPartition(t *testing.T) {
	for _, quorum := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			small := []mcd.NodeID{1, 3}
			var parted atomic.Bool
			nodes := map[transport.MAC]mcd.NodeID{}
			c := new(cluster).start(t, 5, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1},
				Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
					return &filter{l, func(f *transport.Frame) bool {
						return parted.Load() && slices.Contains(small, node) != slices.Contains(small, nodes[f.Dst])
					}}
				},
			})
			for _, e := range c.eps {
				nodes[e.MAC(0)] = e.Node()
			}
			all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "shuffle"), PeerTimeout: time.Second, Quorum: quorum})
			stages(t, all, 2, func(int, int) {})
			parted.Store(true)
			parts := [2][]*barrier.Group{}
			for k, err := range each(all, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
				in, others := 0, small
				if slices.Contains(small, mcd.NodeID(k)) {
					in, others = 1, []mcd.NodeID{0, 2, 4}
				}
				down := downOf(t, err)
				rest, without := all[k].Without()
				none := in == 1 && quorum > 0
				if !slices.Equal(down.Nodes, others) || errors.Is(err, barrier.ErrNoQuorum) != none ||
					errors.Is(without, barrier.ErrNoQuorum) != none {
					t.Errorf("quorum %d, node %d: %v; without: %v", quorum, k, err, without)
				}
				if without == nil {
					parts[in] = append(parts[in], rest)
				}
			}
			for _, part := range parts {
				stages(t, part, 2, func(int, int) {})
			}
			parted.Store(false)
			for _, part := range parts { // the parts stay apart, and whole
				stages(t, part, 2, func(int, int) {})
			}
		})
	}
}

// filter is a link that loses some of the frames that are sent.
type filter struct {
	transport.Link
	lose func(*transport.Frame) bool
}

func (l *filter) Send(frames []transport.Frame) (int, error) {
	for i := range frames {
		if l.lose(&frames[i]) {
			continue
		}
		if n, err := l.Link.Send(frames[i : i+1]); n == 0 {
			return i, err
		}
	}
	return len(frames), nil
}

// byVID routes one destination by VID 6, and all others by VID 5.
type byVID struct{ six atomic.Pointer[transport.MAC] }

func (r *byVID) Route(dst transport.MAC) transport.OptionalTag {
	if six := r.six.Load(); six != nil && *six == dst {
		return vid(6)
	}
	return vid(5)
}

func vid(v transport.VID) transport.OptionalTag {
	return transport.OptionalTag{Tagged: true, Tag: transport.Tag{VID: v}}
}

// The route to a node loses all frames, and other paths to it do not. It is not taken for gone as
// long as a failover may move the route: here within two peer timeouts. If none does, it is said
// what is wrong.
func TestARouteThatLosesAllFrames(t *testing.T) {
	for _, repaired := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var lost atomic.Int64
			router := new(byVID)
			c := &cluster{cfg: barrier.Config{Detours: []transport.OptionalTag{vid(5)}}} // node 2 knows VID 6 alone
			c.start(t, 3, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1, Router: router},
				Customize: func(node mcd.NodeID, cfg *mcd.Config) {
					if node == 2 {
						cfg.Router, _ = vlan.Fixed(vid(6).Tag)
					}
				},
				Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
					return &filter{l, func(f *transport.Frame) bool { return f.Tagged && int64(f.Tag.VID) == lost.Load() }}
				},
			})
			all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "shuffle"), PeerTimeout: time.Second})
			two := c.eps[2].MAC(0)
			router.six.Store(&two)
			stages(t, all, 2, func(int, int) {})
			lost.Store(6)
			if repaired {
				time.AfterFunc(2500*time.Millisecond, func() { lost.Store(0) })
			}
			begun := time.Now()
			for k, err := range each(all, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
				if repaired {
					if err != nil {
						t.Errorf("node %d: %v, and its route was repaired in time", k, err)
					}
				} else if down := downOf(t, err); k != 2 && (!slices.Equal(down.Nodes, []mcd.NodeID{2}) ||
					down.Reasons[0] != barrier.Unreachable || !strings.Contains(err.Error(), "alive on other paths")) {
					t.Errorf("node %d: %v, want node 2 to be unreachable", k, err)
				}
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("repaired %t: it took %v, more than five timeouts", repaired, took)
			}
		})
	}
}

// All paths to a node are tried before it counts as silent, however many there are.
func TestDetours_AllAreTried(t *testing.T) {
	for count := 1; count <= 4; count++ {
		for works := range count {
			synctest.Test(t, func(t *testing.T) {
				var lost atomic.Bool
				c := new(cluster)
				for k := range count {
					c.cfg.Detours = append(c.cfg.Detours, vid(transport.VID(10+k)))
				}
				path := transport.VID(10 + works)
				c.start(t, 2, mcdtest.Config{
					Endpoint: mcd.Config{Spin: -1},
					Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
						return &filter{l, func(f *transport.Frame) bool { return lost.Load() && (!f.Tagged || f.Tag.VID != path) }}
					},
				})
				all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Second})
				stages(t, all, 2, func(int, int) {})
				lost.Store(true)
				if down := downOf(t, all[0].Barrier(limit(t))); down.Reasons[0] != barrier.Unreachable {
					t.Errorf("%d detours, and number %d works: %v, want it to be unreachable", count, works+1, down)
				}
			})
		}
	}
}

// The quorum is of the group's members. A barrier of a few of them does not lack it.
func TestQuorum_OfAMask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Second, Quorum: 3})
		_ = c.eps[1].Close()
		err := all[0].BarrierWith(limit(t), barrier.Options{Members: barrier.MaskOf(0, 1)})
		if down := downOf(t, err); errors.Is(err, barrier.ErrNoQuorum) || down.Survivors != 1 || down.Quorum != 0 {
			t.Errorf("%v, survivors %d, quorum %d: three of four members live", err, down.Survivors, down.Quorum)
		}
		if _, err := all[0].Without(1); err != nil {
			t.Errorf("without node 1: %v", err)
		}
	})
}

// Many groups that wait for one node send their own probes, and not each those of all.
func TestDetours_OfManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups = 32
		var probes atomic.Int64
		c := &cluster{cfg: barrier.Config{Detours: []transport.OptionalTag{vid(5)}}}
		c.start(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
				return &filter{l, func(f *transport.Frame) bool {
					if f.Tagged {
						probes.Add(1)
					}
					return f.Tagged
				}}
			},
		})
		_ = c.eps[1].Close()
		var all []*barrier.Group
		for id := range uint32(groups) {
			all = append(all, group(t, c.services[0], barrier.GroupConfig{ID: id, PeerTimeout: time.Second}))
		}
		for _, err := range each(all, func(k int, g *barrier.Group) error {
			time.Sleep(time.Duration(k) * time.Millisecond) // each has timers of its own
			return g.Barrier(limit(t))
		}) {
			downOf(t, err)
		}
		if n := probes.Load(); n < groups || n > groups*2*20 {
			t.Errorf("%d probes by %d groups, want one for each nack at most", n, groups)
		}
	})
}
