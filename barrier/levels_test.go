package barrier_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// SCMD §3.5 within §4: the members of a chassis meet first, also under a mask, in a group that was made
// Without some, and in its masks. Four chassis of three send six messages between them, whoever is
// missing, and three chassis four.
func TestGroup_LevelsUnderMasksAndWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, dead = 12, 4
		var across atomic.Int64
		byMAC := map[transport.MAC]mcd.NodeID{}
		c := new(cluster).start(t, size, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				return &filter{l, func(f *transport.Frame) bool {
					if byMAC[f.Dst]/3 != node/3 {
						across.Add(1)
					}
					return false
				}}
			},
		})
		for _, e := range c.eps {
			byMAC[e.MAC(0)] = e.Node()
		}
		all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "hier:3:star:star"), PeerTimeout: time.Second})
		count := func(what string, groups []*barrier.Group, mask barrier.Mask, want int64) {
			t.Helper()
			groups = slices.DeleteFunc(slices.Clone(groups), func(g *barrier.Group) bool {
				return !mask.IsZero() && !mask.Has(g.Members()[g.Rank()])
			})
			for range 2 {
				across.Store(0)
				expectNone(t, each(groups, func(_ int, g *barrier.Group) error {
					return g.BarrierWith(limit(t), barrier.Options{Members: mask})
				}))
				synctest.Wait()
				if got := across.Load(); got != want {
					t.Errorf("%s: %d messages between chassis, want %d", what, got, want)
				}
			}
		}
		without := func(groups []*barrier.Group, gone mcd.NodeID, nodes ...mcd.NodeID) (left []*barrier.Group) {
			for _, g := range groups {
				if g.Members()[g.Rank()] == gone {
					continue
				}
				made, err := g.Without(nodes...)
				if err != nil {
					t.Fatal(err)
				}
				left = append(left, made)
			}
			return left
		}
		count("all", all, barrier.Mask{}, 6)
		count("a mask without node 1", all, barrier.MaskOf(0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), 6)
		count("a mask without a chassis and a Center", all, barrier.MaskOf(1, 2, 6, 7, 8, 10), 4)
		rest := without(all, 1, 1)
		count("without node 1", rest, barrier.Mask{}, 6)
		count("a mask of these", rest, barrier.MaskOf(0, 3, 5, 8, 11), 6)

		_ = c.eps[dead].Close()
		survivors := slices.Delete(slices.Clone(all), dead, dead+1)
		for _, err := range each(survivors, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
			downOf(t, err)
		}
		left := without(survivors, dead)
		time.Sleep(time.Minute) // virtual: until all have told each other of the dead
		count("without the dead", left, barrier.Mask{}, 6)
		count("without another one, too", without(left, 0, 0), barrier.Mask{}, 6)
	})
}
