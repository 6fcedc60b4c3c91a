package barrier_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/vlan"
)

// A member that dies is named by all, and the survivors' group is counted as well.
func TestOffload_NamesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 5, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 3, barrier.Options{}, time.Millisecond)
		c.faults[3][0].Cut(true)
		living := slices.Delete(slices.Clone(all), 3, 4)
		left := make([]*barrier.Group, len(living))
		expectNone(t, each(living, func(k int, g *barrier.Group) error {
			var down *barrier.NodeDownError
			if err := g.Barrier(limit(t)); !errors.As(err, &down) || !slices.Equal(down.Nodes, []mcd.NodeID{3}) {
				t.Errorf("member %d: %v, want node 3 down", k, err)
			}
			var err error
			left[k], err = g.Without()
			return err
		}))
		if n := slots(u); n != 0 {
			t.Errorf("%d slots are taken of a group that has failed", n)
		}
		u.seen(slot.Transmit)
		rounds(t, left, 5, barrier.Options{}, time.Millisecond)
		if got := u.seen(slot.Transmit); got != 4 {
			t.Errorf("the unit sent %d releases of the survivors, want 4", got)
		}
	})
}

// A member that says goodbye is named, and a group that is closed gives back its slots.
func TestOffload_Leaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 2, barrier.Options{}, time.Millisecond)
		if n := slots(u); n != 1 {
			t.Errorf("%d slots are taken, want 1", n)
		}
		_ = all[2].Close()
		if n := slots(u); n != 0 {
			t.Errorf("%d slots are taken, and a member has left", n)
		}
		if err := all[0].Barrier(limit(t)); !errors.Is(err, barrier.ErrNodeDown) {
			t.Errorf("%v, want ErrNodeDown", err)
		}
		others := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "offload"), ID: 9})
		rounds(t, others, 2, barrier.Options{}, time.Millisecond)
		if n := slots(u); n != 1 {
			t.Errorf("%d slots are taken, want 1", n)
		}
		_ = others[0].Close()
		if n := slots(u); n != 0 {
			t.Errorf("%d slots are taken of a closed group", n)
		}
	})
}

// Of two members the Center alone decides that the other one is down, and gives back its slots: also
// those of numbers that nobody has entered.
func TestOffload_OfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 2, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		for number := range uint8(3) {
			rounds(t, all, 2, barrier.Options{Number: number}, time.Millisecond)
		}
		if n := slots(u); n != 3 {
			t.Errorf("%d slots are taken, want 3", n)
		}
		c.faults[1][0].Cut(true)
		if err := all[0].Barrier(limit(t)); !errors.Is(err, barrier.ErrNodeDown) {
			t.Errorf("%v, want ErrNodeDown", err)
		}
		if n := slots(u); n != 0 {
			t.Errorf("%d slots are taken", n)
		}
	})
}

// A member that has arrived, and leaves, has arrived: all the same the barrier is completed, and
// the next one is not counted.
func TestOffload_ArrivesAndLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		o := barrier.Options{Number: 5}
		rounds(t, all, 2, o, time.Millisecond)
		ticket := arrive(t, all[0], o)
		arrive(t, all[2], o)
		synctest.Wait()
		_ = all[2].Close()
		arrive(t, all[1], o)
		if err := ticket.Wait(limit(t)); err != nil {
			t.Error(err)
		}
		if n, ever := slots(u), u.everUsed(); n != 0 || ever != 1 {
			t.Errorf("%d slots are taken, and %d were; want none, and 1", n, ever)
		}
	})
}

// A node table need not have the node itself: the unit counts all the same.
func TestOffload_TableWithoutTheCenter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		if err := c.eps[0].SetNodes(c.eps[0].Nodes()[1:]); err != nil {
			t.Fatal(err)
		}
		rounds(t, c.groups(t, offloadConfig(t)), 3, barrier.Options{}, time.Millisecond)
		if n := slots(u); n != 1 {
			t.Errorf("%d slots are taken, want 1", n)
		}
		if got := u.seen(slot.Transmit); got == 0 {
			t.Error("the unit has sent no release")
		}
	})
}

// Without room for another slot the Center's process counts.
func TestOffload_WithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		u.room = 1
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 3, barrier.Options{}, time.Millisecond)
		u.seen(slot.Transmit)
		rounds(t, all, 3, barrier.Options{Number: 1}, time.Millisecond)
		if got := u.seen(slot.Transmit); got != 0 {
			t.Errorf("the unit sent %d releases without a slot", got)
		}
	})
}

// The Center polls a goodbye and the last arrival at once: the unit has counted the arrival before the
// goodbye is handled. The barrier is completed, whether the Center waits or computes.
func TestOffload_LeavesBeforeTheLastArrival(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, u := openOffload(t, 3, fault.Config{}, 0, nil)
			all := c.groups(t, offloadConfig(t))
			rounds(t, all, 2, barrier.Options{}, time.Millisecond)
			ticket := arrive(t, all[0], barrier.Options{})
			arrive(t, all[2], barrier.Options{})
			done := make(chan error, 1)
			if waits {
				go func() { done <- ticket.Wait(limit(t)) }()
			}
			polls := make(chan struct{}) // the Center's link is polled again
			stop, err := c.eps[0].OpenPort(1, mcd.PortOptions{Receive: func([]mcd.Message, bool) { <-polls }})
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.eps[1].OpenPort(1, mcd.PortOptions{})
			if err == nil {
				err = p.Send(limit(t), stop.Addr(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			closing := make(chan error)
			go func() { closing <- all[2].Close() }()
			synctest.Wait()
			arrive(t, all[1], barrier.Options{})
			synctest.Wait()
			close(polls)
			if !waits {
				synctest.Wait()
				done <- ticket.Wait(limit(t))
			}
			if err := errors.Join(<-done, <-closing); err != nil {
				t.Errorf("waits %v: %v", waits, err)
			}
			if n := slots(u); n != 0 {
				t.Errorf("%d slots are taken", n)
			}
			if s := all[0].Stats(); s.Nacks != 0 {
				t.Errorf("%d messages were asked for", s.Nacks)
			}
		})
	}
}

// The unit has released a barrier that the Center has not looked at since: it is completed all the same where
// a member leaves after it.
func TestOffload_LeavesAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 2, barrier.Options{}, time.Millisecond)
		u.seen(slot.Transmit)
		ticket := arrive(t, all[0], barrier.Options{})
		arrive(t, all[1], barrier.Options{})
		arrive(t, all[2], barrier.Options{})
		time.Sleep(100 * time.Microsecond) // its timer has not fired
		if u.seen(slot.Transmit) != 1 {
			t.Error("the unit has not released the barrier")
		}
		_ = all[2].Close()
		if done, err := ticket.Done(); !done || err != nil {
			t.Errorf("done %v, %v", done, err)
		}
		if n := slots(u); n != 0 {
			t.Errorf("%d slots are taken", n)
		}
	})
}

// Where releases get a tag, the Center's process goes on, and where they lose it the unit does.
func TestOffload_FollowsRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, err := vlan.NewTable(nil)
		if err != nil {
			t.Fatal(err)
		}
		c, u := openOffload(t, 3, fault.Config{}, 0, func(node mcd.NodeID, cfg *mcd.Config) {
			if node == 0 {
				cfg.Router = table
			}
		})
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 3, barrier.Options{}, time.Millisecond)
		if got := u.seen(slot.Transmit); got != 2 {
			t.Errorf("the unit sent %d releases, want 2", got)
		}
		tagged := vlan.Route{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 1})}
		if err := table.Replace([]vlan.Route{tagged}); err != nil {
			t.Fatal(err)
		}
		rounds(t, all, 3, barrier.Options{}, time.Millisecond)
		if got, n := u.seen(slot.Transmit), slots(u); got != 0 || n != 0 {
			t.Errorf("with a tag the unit sent %d releases, and %d slots are taken", got, n)
		}
		if err := table.Replace(nil); err != nil {
			t.Fatal(err)
		}
		rounds(t, all, 3, barrier.Options{}, time.Millisecond)
		if got := u.seen(slot.Transmit); got != 2 {
			t.Errorf("the unit sent %d releases, want 2", got)
		}
	})
}

// A slot that is not in the engine's generation is given back, and the next release takes another.
func TestOffload_SlotOfAnotherGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 2, barrier.Options{}, time.Millisecond)
		if n := slots(u); n != 1 || !u.slots[0].Close(3) {
			t.Fatalf("%d slots are taken, want one that is in generation 3", n)
		}
		u.slots[0].Drain(0)
		u.seen(slot.Transmit)
		rounds(t, all, 3, barrier.Options{}, time.Millisecond)
		if got := u.seen(slot.Transmit); got != 2 {
			t.Errorf("the unit sent %d releases, want 2", got)
		}
		if n := slots(u); n != 1 {
			t.Errorf("%d slots are taken, want 1", n)
		}
	})
}

// Members of which one is not in the node table any more are not counted.
func TestOffload_MemberIsNotInTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		arrive(t, all[1], barrier.Options{})
		arrive(t, all[2], barrier.Options{})
		synctest.Wait() // the Center has both
		if err := c.eps[0].SetNodes(c.eps[0].Nodes()[:2]); err != nil {
			t.Fatal(err)
		}
		if err := all[0].Barrier(limit(t)); err != nil {
			t.Error(err)
		}
		if n := slots(u); n != 0 {
			t.Errorf("%d slots are taken", n)
		}
	})
}

// The last arrival of a barrier that the Center has entered may come just as it leaves the group: it
// keeps no slot for a barrier that will never be.
func TestOffload_TheLastArrivesWhileTheCenterLeaves(t *testing.T) {
	c, u := openOffload(t, 3, fault.Config{}, 0, nil)
	for id := range 150 { // the two meet in a few of them
		cfg := offloadConfig(t)
		cfg.ID = uint32(id)
		all := c.groups(t, cfg)
		for range 2 {
			expectNone(t, each(all, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }))
		}
		arrive(t, all[0], barrier.Options{})
		arrive(t, all[1], barrier.Options{})
		expectNone(t, each([]*barrier.Group{all[0], all[2]}, func(k int, g *barrier.Group) error {
			if k == 0 {
				return g.Close()
			}
			_, _ = g.Arrive() // or it has heard the goodbye
			return nil
		}))
		closeAll(all[1:])
		if n := u.inUse(); n != 0 {
			t.Fatalf("%d slots are taken of groups that are closed, after %d groups", n, id+1)
		}
	}
}
