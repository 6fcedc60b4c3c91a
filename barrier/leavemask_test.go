package barrier_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/fault"
)

// A member leaves the group, and never used a mask. Who waits for it there is told, before and after,
// whether or not the algorithm had it say goodbye to that one.
func TestMask_AMemberHasLeftTheGroup(t *testing.T) {
	for _, name := range algorithms {
		for _, loss := range []float64{0, 0.2} {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, 5, 1, fault.Config{Loss: loss}, 1)
				all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, name)})
				stages(t, all, 2, func(int, int) {})
				before, after := barrier.MaskOf(1, 2, 3), barrier.MaskOf(3, 4, 1)
				ticket := arrive(t, all[1], barrier.Options{Members: before})
				_ = all[3].Close()
				expectNone(t, each([]*barrier.Group{all[1], all[2], all[1], all[4]}, func(k int, g *barrier.Group) error {
					var err error
					switch k {
					case 0:
						err = ticket.Wait(limit(t))
					case 1:
						err = g.BarrierWith(limit(t), barrier.Options{Members: before})
					default:
						err = g.BarrierWith(limit(t), barrier.Options{Members: after})
					}
					down := downOf(t, err)
					if !slices.Equal(down.Nodes, []mcd.NodeID{3}) || !slices.Equal(down.Reasons, []barrier.Reason{barrier.Left}) {
						t.Errorf("%s, loss %v, %d: %v", name, loss, k, err)
					}
					return nil
				}))
			})
		}
	}
}

// A mask of a group does not go on as that of a later group of the same members, because one of them has
// left the first.
func TestMask_IsNotThatOfALaterGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, 1, fault.Config{}, 0)
		first, second := c.groups(t, barrier.GroupConfig{}), c.groups(t, barrier.GroupConfig{})
		stages(t, first, 2, func(int, int) {})
		_ = first[1].Close()
		mask := barrier.Options{Members: barrier.MaskOf(0, 1)}
		ticket := arrive(t, second[1], mask)
		if down := downOf(t, first[0].BarrierWith(limit(t), mask)); !slices.Equal(down.Nodes, []mcd.NodeID{1}) {
			t.Errorf("the first group: %v, want node 1 down", down)
		}
		if done, err := ticket.Done(); done || err != nil {
			t.Errorf("the second group is left before node 0 has entered: %v, %v", done, err)
		}
		stages(t, second, 2, func(int, int) {})
		if err := second[0].BarrierWith(limit(t), mask); err != nil {
			t.Error(err)
		}
	})
}

// While a member has not used a mask yet, and has not left, others wait for it.
func TestMask_IsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{})
		mask := barrier.Options{Members: barrier.MaskOf(0, 1)}
		ticket := arrive(t, all[0], mask)
		if err := ticket.Wait(shorter(t, limit(t), 20*barrier.DefaultPeerTimeout)); err == nil {
			t.Error("the barrier was left before node 1 has entered")
		}
		arrive(t, all[1], mask)
		if err := ticket.Wait(limit(t)); err != nil {
			t.Error(err)
		}
		stages(t, all, 2, func(int, int) {})
	})
}
