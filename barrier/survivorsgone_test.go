package barrier_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A survivor's process ends once all have decided who is down, and begins anew at once: it answers
// that it has no such group. The others wait for it in theirs, and learn that it does not come.
func TestSurvivorThatBeginsAnew(t *testing.T) {
	for k := range 8 {
		closed, late, other := k&1 != 0, k&2 != 0, k&4 != 0
		t.Run(fmt.Sprintf("closed %t, late %t, other group %t", closed, late, other), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { beginAnew(t, closed, late, other) })
		})
	}
}

// beginAnew has the others close their former group, or not; the survivor begin anew before that, or
// once all know what all have decided; and then make the first group again, or another one.
func beginAnew(t *testing.T, closed, late, other bool) {
	n := newTable(t, 4)
	defer n.close()
	n.cfg.PeerTimeout = time.Second
	for k := range 4 {
		n.begin(k)
	}
	stages(t, n.groups, 2, func(int, int) {})
	_ = n.eps[3].Close()
	former := slices.Clone(n.groups)
	expectNone(t, each(n.groups[:3], func(k int, g *barrier.Group) (err error) {
		downOf(t, g.Barrier(limit(t)))
		n.groups[k], err = g.Without()
		return err
	}))
	restart := func() {
		_ = n.eps[2].Close()
		if other {
			n.cfg.ID = 1
		}
		n.begin(2)
	}
	if !late {
		restart()
	}
	if closed {
		closeAll(former[:2])
	}
	if late {
		time.Sleep(100 * time.Millisecond)
		restart()
	}
	expectNone(t, each(n.groups[:2], func(k int, g *barrier.Group) error {
		if down := downOf(t, g.Barrier(limit(t))); !slices.Equal(down.Nodes, []mcd.NodeID{2}) {
			t.Errorf("node %d was told %v, want that node 2 is down", k, down)
		}
		rest, err := g.Without()
		if err != nil {
			return err
		}
		return rest.Barrier(limit(t))
	}))
}

// As TestSurvivorsThatDecidedApart; but those that go on without it have forgotten the former group by
// the time it waits for them.
func TestSurvivorThatDecidedApart_AndIsForgotten(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const size, dead, apart = 4, 3, 1
			c, mute := muted(t, size, apart)
			cfg := barrier.GroupConfig{Algorithm: parse(t, "shuffle"), PeerTimeout: time.Second}
			all := c.groups(t, cfg)
			stages(t, all, 2, func(int, int) {})
			_ = c.eps[dead].Close()
			time.AfterFunc(900*time.Millisecond, func() { mute.Store(true) })
			expectNone(t, each(all[:dead], func(k int, g *barrier.Group) error {
				downOf(t, g.Barrier(limit(t)))
				return nil
			}))
			for _, k := range []int{0, 2} {
				_ = all[k].Close()
				for id := range uint32(70) {
					own := cfg
					own.ID, own.Members = 100+id, barrier.MaskOf(mcd.NodeID(k))
					_ = group(t, c.services[k], own).Close()
				}
			}
			mute.Store(false)
			rest, err := all[apart].Without()
			if err != nil {
				t.Fatal(err)
			}
			if closed {
				_ = all[apart].Close()
			}
			downOf(t, rest.Barrier(limit(t)))
		})
	}
}

// A member says who is gone, and leaves the group before it hears that all others agree: it is a
// survivor, and makes no group of survivors. The others learn that it does not come.
func TestSurvivorThatLeftUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const dead, leaves = 3, 1
		const hears, deaf, hearsAgain = 0, 1, 2
		var ears atomic.Int32 // of the one that leaves
		var c *cluster
		c = new(cluster).start(t, 4, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
				return &filter{l, func(f *transport.Frame) bool {
					var m engine.Message
					if len(f.Payload) > mcd.HeaderLen && engine.Parse(f.Payload[mcd.HeaderLen:], &m) == nil &&
						m.Kind == engine.Report && len(m.Report.Gone) > 0 { // by any of them
						ears.CompareAndSwap(hears, deaf)
					}
					return ears.Load() == deaf && f.Dst == c.eps[leaves].MAC(0)
				}}
			},
		})
		all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "shuffle"), PeerTimeout: time.Second})
		stages(t, all, 2, func(int, int) {})
		_ = c.eps[dead].Close()
		expectNone(t, each(all[:dead], func(k int, g *barrier.Group) error {
			if k == leaves {
				if err := g.Barrier(shorter(t, limit(t), 1200*time.Millisecond)); !errors.Is(err, barrier.ErrIncomplete) {
					t.Errorf("node %d was told %v, want nothing", k, err)
				}
				_ = g.Close()
				ears.Store(hearsAgain)
				return nil
			}
			if down := downOf(t, g.Barrier(limit(t))); !slices.Equal(down.Nodes, []mcd.NodeID{dead}) {
				t.Errorf("node %d was told %v, want that node %d is down", k, down, dead)
			}
			rest, err := g.Without()
			if err != nil {
				return err
			}
			if down := downOf(t, rest.Barrier(limit(t))); !slices.Equal(down.Nodes, []mcd.NodeID{leaves}) {
				t.Errorf("node %d was told %v, want that node %d is down", k, down, leaves)
			}
			if rest, err = rest.Without(); err != nil {
				return err
			}
			return rest.Barrier(limit(t))
		}))
	})
}

// A survivor makes no group of survivors; another one of these dies, so that the others are survivors
// once more. They learn that the first one does not come, as it begins anew.
func TestSurvivorThatBeginsAnew_Later(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newTable(t, 5)
			defer n.close()
			n.cfg.PeerTimeout = time.Second
			for k := range 5 {
				n.begin(k)
			}
			stages(t, n.groups, 2, func(int, int) {})
			without := func(k int, g *barrier.Group) (err error) {
				downOf(t, g.Barrier(limit(t)))
				if n.groups[k], err = g.Without(); closed {
					_ = g.Close()
				}
				return err
			}
			_ = n.eps[4].Close()
			expectNone(t, each(n.groups[:4], func(k int, g *barrier.Group) error {
				if k < 3 {
					return without(k, g)
				}
				downOf(t, g.Barrier(limit(t)))
				return nil
			}))
			_ = n.eps[2].Close()
			expectNone(t, each(n.groups[:2], without))
			_ = n.eps[3].Close()
			n.begin(3)
			expectNone(t, each(n.groups[:2], func(k int, g *barrier.Group) error {
				return without(k, g)
			}))
			stages(t, n.groups[:2], 2, func(int, int) {})
		})
	}
}

// A member that is done, and has not noticed that another one died, closes the group: it has agreed
// on that in the background, and makes no group of survivors. The others learn that it does not come,
// as those do that wait for it in a mask.
func TestSurvivorThatIsDone(t *testing.T) {
	const waits, done, dead = 0, 1, 2
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 3, 1, fault.Config{}, 0)
			all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "star"), PeerTimeout: time.Second})
			stages(t, all, 2, func(int, int) {})
			_ = c.eps[dead].Close()
			downOf(t, all[waits].Barrier(limit(t)))
			synctest.Wait() // all have agreed
			_ = all[done].Close()
			if _, err := all[done].Without(); !errors.Is(err, barrier.ErrClosed) {
				t.Errorf("the group is closed, and Without says %v", err)
			}
			rest, err := all[waits].Without()
			if err != nil {
				t.Fatal(err)
			}
			mask := barrier.Options{Members: barrier.MaskOf(waits, done)}
			if closed {
				_ = all[waits].Close()
			} else if down := downOf(t, all[waits].BarrierWith(limit(t), mask)); !slices.Equal(down.Nodes, []mcd.NodeID{done}) {
				t.Errorf("by the mask: %v, want node %d", down, done)
			}
			if down := downOf(t, rest.Barrier(limit(t))); !slices.Equal(down.Nodes, []mcd.NodeID{done}) {
				t.Errorf("%v, want node %d", down, done)
			}
		})
	}
}

// A member goes on with the survivors, and closes the former group. Who waits for it there, in a mask
// that it has never used, learns that it does not come; and then finds it among the survivors.
func TestSurvivorThatClosesTheFormerGroup(t *testing.T) {
	const waits, goesOn, dead = 0, 1, 2
	for _, later := range []bool{false, true} { // it closes while the other one waits
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 3, 1, fault.Config{}, 0)
			all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Second})
			stages(t, all, 2, func(int, int) {})
			_ = c.eps[dead].Close()
			expectNone(t, each(all[:dead], func(_ int, g *barrier.Group) error {
				downOf(t, g.Barrier(limit(t)))
				return nil
			}))
			rest := make([]*barrier.Group, dead)
			var err error
			if rest[goesOn], err = all[goesOn].Without(); err != nil {
				t.Fatal(err)
			}
			if later {
				time.AfterFunc(10*time.Second, func() { _ = all[goesOn].Close() })
			} else {
				_ = all[goesOn].Close()
			}
			err = all[waits].BarrierWith(limit(t), barrier.Options{Members: barrier.MaskOf(waits, goesOn)})
			if down := downOf(t, err); !slices.Equal(down.Nodes, []mcd.NodeID{goesOn}) || down.Reasons[0] != barrier.Left {
				t.Errorf("later %t: by the mask: %v, want that node %d has left", later, down, goesOn)
			}
			if rest[waits], err = all[waits].Without(); err != nil {
				t.Fatal(err)
			}
			stages(t, rest, 2, func(int, int) {})
		})
	}
}
