package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/vlan"
)

func offloadConfig(t testing.TB) barrier.GroupConfig {
	return barrier.GroupConfig{Algorithm: parse(t, "offload")}
}

// slots returns how many slots are taken, once all is still.
func slots(u *unit) int {
	synctest.Wait()
	return u.inUse()
}

// rounds has all go through barriers, in which the Center computes between Arrive and Wait, and the
// others arrive meanwhile. It returns how long the others waited longest.
func rounds(t *testing.T, all []*barrier.Group, n int, o barrier.Options, work time.Duration) (longest time.Duration) {
	t.Helper()
	var mu sync.Mutex
	expectNone(t, each(all, func(k int, g *barrier.Group) error {
		for range n {
			if k != 0 {
				time.Sleep(work / 4)
			}
			ticket, err := g.ArriveWith(o)
			if err != nil {
				return err
			}
			if k == 0 {
				time.Sleep(work)
			}
			begun := time.Now()
			if err := ticket.Wait(limit(t)); err != nil {
				return err
			}
			if k != 0 {
				mu.Lock()
				longest = max(longest, time.Since(begun))
				mu.Unlock()
				time.Sleep(work - work/4)
			}
		}
		return nil
	}))
	return longest
}

// While the Center computes, the unit counts all frames but those of the first generation and
// releases the others, whatever the size.
func TestOffload_CountsWhileTheCenterComputes(t *testing.T) {
	for _, size := range []int{2, 3, 33, 70} {
		synctest.Test(t, func(t *testing.T) {
			c, u := openOffload(t, size, fault.Config{}, 0, nil)
			all := c.groups(t, offloadConfig(t))
			longest := rounds(t, all, 11, barrier.Options{}, time.Millisecond)
			if longest > 0 {
				t.Errorf("%d nodes: the others waited for %v while the Center computed", size, longest)
			}
			if got := u.seen(slot.Transmit); got != 10 {
				t.Errorf("%d nodes: the unit sent %d releases, want 10", size, got)
			}
			if got, want := u.seen(slot.Drop), 10*(size-2); got != want {
				t.Errorf("%d nodes: the unit counted %d frames, want %d", size, got, want)
			}
			if got := u.seen(slot.Pass); got != 0 {
				t.Errorf("%d nodes: the unit passed %d frames on", size, got)
			}
			for _, g := range all {
				if s := g.Stats(); s.Barriers != 11 || s.Nacks != 0 || s.Resent != 0 || s.Duplicates != 0 || s.Late != 0 {
					t.Errorf("%+v: want 11 barriers, and nothing asked for", s)
				}
			}
		})
	}
}

// One frame wakes a Center that waits.
func TestOffload_WakesACenterThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 5, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		expectNone(t, each(all, func(k int, g *barrier.Group) error {
			for range 11 {
				if k != 0 {
					time.Sleep(time.Duration(k) * 10 * time.Microsecond)
				}
				if err := g.Barrier(limit(t)); err != nil {
					return err
				}
			}
			return nil
		}))
		if passed, counted, sent := u.seen(slot.Pass), u.seen(slot.Drop), u.seen(slot.Transmit); passed != 10 || counted != 30 || sent != 0 {
			t.Errorf("the unit passed %d frames on, counted %d and sent %d releases, want 10, 30 and 0", passed, counted, sent)
		}
		if s := all[0].Stats(); s.Late != 0 || s.Duplicates != 0 {
			t.Errorf("%d late messages and %d doubles, want none", s.Late, s.Duplicates)
		}
	})
}

// In spite of loss, duplicates, reordering, delay and corruption no node leaves early, and none
// hangs, whether the Center computes or waits.
func TestOffload_Faults(t *testing.T) {
	seed := rand.Uint64()
	for range 4 {
		seed++
		synctest.Test(t, func(t *testing.T) {
			cfg := fault.Config{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Delay: 0.1, Corrupt: 0.05, DelayMax: 20 * time.Millisecond}
			c, u := openOffload(t, 7, cfg, seed, nil)
			all := c.groups(t, offloadConfig(t))
			var entered [7]atomic.Int64
			expectNone(t, each(all, func(k int, g *barrier.Group) error {
				rng := rand.New(rand.NewPCG(seed, uint64(k)))
				for round := int64(1); round <= 100; round++ {
					time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Millisecond))))
					entered[k].Store(round)
					ticket, err := g.Arrive()
					if err != nil {
						return err
					}
					if rng.IntN(2) == 0 {
						time.Sleep(100 * time.Millisecond)
					}
					if err := ticket.Wait(limit(t)); err != nil {
						return err
					}
					for other := range entered {
						if entered[other].Load() < round {
							return fmt.Errorf("round %d was left before node %d had entered", round, other)
						}
					}
				}
				return nil
			}))
			if u.seen(slot.Transmit) == 0 || u.seen(slot.Pass) == 0 || u.seen(slot.Drop) == 0 {
				t.Error("not all verdicts were seen")
			}
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// Two groups, two numbers and a mask are counted at one time, each for itself.
func TestOffload_GroupsMasksAndNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 4, fault.Config{}, 0, nil)
		first := c.groups(t, offloadConfig(t))
		second := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "offload"), ID: 1})
		var running sync.WaitGroup
		for _, run := range []func(){
			func() { rounds(t, first, 21, barrier.Options{}, time.Millisecond) },
			func() { rounds(t, second, 31, barrier.Options{}, 700*time.Microsecond) },
			func() { rounds(t, first, 26, barrier.Options{Number: 200}, 800*time.Microsecond) },
			func() {
				mask := barrier.Options{Members: barrier.MaskOf(0, 1, 3)}
				rounds(t, []*barrier.Group{second[0], second[1], second[3]}, 41, mask, 900*time.Microsecond)
			},
		} {
			running.Go(run)
		}
		running.Wait()
		if got, want := u.seen(slot.Transmit), 20+30+25+40; got != want {
			t.Errorf("the unit sent %d releases, want %d", got, want)
		}
		if n := slots(u); n != 4 {
			t.Errorf("%d slots are taken, want 4", n)
		}
	})
}

// Done sees what the unit has counted, and a wait that was given up is resumed. Meanwhile the unit
// releases the others without the Center, which does not wait.
func TestOffload_DoneAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 1, barrier.Options{}, 0)
		ticket := arrive(t, all[0], barrier.Options{})
		arrive(t, all[1], barrier.Options{})
		var incomplete *barrier.IncompleteError
		if err := ticket.Wait(shorter(t, context.Background(), time.Millisecond)); !errors.As(err, &incomplete) ||
			!slices.Equal(incomplete.Missing, []mcd.NodeID{2}) {
			t.Errorf("%v, want node 2 missing", err)
		}
		if ticket = arrive(t, all[0], barrier.Options{}); ticket.Generation() != 2 {
			t.Errorf("generation %d, want 2", ticket.Generation())
		}
		if done, _ := ticket.Done(); done {
			t.Error("done without node 2")
		}
		arrive(t, all[2], barrier.Options{})
		synctest.Wait()
		if sent, passed := u.seen(slot.Transmit), u.seen(slot.Pass); sent != 1 || passed != 0 {
			t.Errorf("the unit sent %d releases and passed %d frames on, want 1 and 0", sent, passed)
		}
		if done, err := ticket.Done(); !done || err != nil {
			t.Errorf("done %v, %v", done, err)
		}
		status, err := all[1].Status(limit(t), 0)
		if err != nil || status[0].Presence != barrier.Entered {
			t.Errorf("%v, %v", status, err)
		}
	})
}

// While one goroutine of the Center waits, whichever, the last frame wakes it, though another one has
// given up; behind both the unit releases the others itself.
func TestOffload_OneOfTwoGivesUp(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second time.Duration // until they give up
		passed, sent  int
	}{
		{"the first", time.Millisecond, time.Hour, 1, 0},
		{"the second", time.Hour, time.Millisecond, 1, 0},
		{"both", time.Millisecond, 2 * time.Millisecond, 0, 1},
		{"both, at once", time.Millisecond, time.Millisecond, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster, u := openOffload(t, 2, fault.Config{}, 0, nil)
			all := cluster.groups(t, offloadConfig(t))
			rounds(t, all, 1, barrier.Options{}, 0)
			ticket := arrive(t, all[0], barrier.Options{})
			errs := make(chan error, 2)
			for _, d := range []time.Duration{c.first, c.second} {
				ctx := shorter(t, context.Background(), d)
				go func() { errs <- ticket.Wait(ctx) }()
				synctest.Wait()
			}
			time.Sleep(10 * time.Millisecond)
			u.seen(slot.Pass) // answers of the one that was asked whether it has arrived
			arrive(t, all[1], barrier.Options{})
			synctest.Wait()
			if passed, sent := u.seen(slot.Pass), u.seen(slot.Transmit); passed != c.passed || sent != c.sent {
				t.Errorf("%s: the unit passed %d frames on and sent %d releases, want %d and %d", c.name, passed, sent, c.passed, c.sent)
			}
			ended := 0
			for range 2 {
				if err := <-errs; err == nil {
					ended++
				} else if !errors.Is(err, barrier.ErrIncomplete) {
					t.Errorf("%s: %v, want ErrIncomplete", c.name, err)
				}
			}
			if ended != c.passed {
				t.Errorf("%s: %d waits have seen the end, want %d", c.name, ended, c.passed)
			}
			if err := ticket.Wait(limit(t)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

// Done sees it also if nobody has waited.
func TestOffload_Done(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 2, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 2, barrier.Options{}, time.Millisecond)
		ticket := arrive(t, all[0], barrier.Options{})
		arrive(t, all[1], barrier.Options{})
		synctest.Wait()
		if got := u.seen(slot.Transmit); got != 2 {
			t.Errorf("the unit sent %d releases, want 2", got)
		}
		if done, err := ticket.Done(); !done || err != nil {
			t.Errorf("done %v, %v", done, err)
		}
	})
}

// Members whose arrivals were counted are not asked for them while another one is late, whatever the
// size.
func TestOffload_AsksTheLateAlone(t *testing.T) {
	for _, size := range []int{3, 70} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := openOffload(t, size, fault.Config{}, 0, nil)
			all := c.groups(t, offloadConfig(t))
			rounds(t, all, 1, barrier.Options{}, 0)
			ticket := arrive(t, all[0], barrier.Options{})
			for _, g := range all[1 : size-1] {
				arrive(t, g, barrier.Options{})
			}
			time.Sleep(100 * time.Millisecond)
			arrive(t, all[size-1], barrier.Options{})
			if err := ticket.Wait(limit(t)); err != nil {
				t.Error(err)
			}
			for k, g := range all[:size-1] {
				if s := g.Stats(); s.Resent != 0 {
					t.Errorf("%d nodes: node %d was asked %d times for what was counted", size, k, s.Resent)
				}
			}
			if s := all[0].Stats(); s.Nacks == 0 {
				t.Errorf("%d nodes: the last one was not asked", size)
			}
		})
	}
}

// A Center that arrives last, from the first barrier on, has completed each when Arrive returns, and the
// unit counts the others from the second one on.
func TestOffload_TheCenterIsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		for round := range uint64(4) {
			arrive(t, all[1], barrier.Options{})
			arrive(t, all[2], barrier.Options{})
			time.Sleep(time.Millisecond)
			if got, want := u.seen(slot.Drop), 2*min(int(round), 1); got != want {
				t.Errorf("barrier %d: the unit counted %d frames, want %d", round+1, got, want)
			}
			arrive(t, all[0], barrier.Options{})
			if s := all[0].Stats(); s.Barriers != round+1 {
				t.Errorf("%d barriers are completed, want %d", s.Barriers, round+1)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// Arrivals that the unit cannot count, as they carry a tag, count with the others.
func TestOffload_TaggedArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 4, fault.Config{}, 0, func(node mcd.NodeID, cfg *mcd.Config) {
			tagged := vlan.Route{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 1})}
			if table, err := vlan.NewTable([]vlan.Route{tagged}); err != nil {
				t.Error(err)
			} else if node == 2 {
				cfg.Router = table
			}
		})
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 11, barrier.Options{}, time.Millisecond)
		if got := u.seen(slot.Drop) + u.seen(slot.Transmit); got != 20 {
			t.Errorf("the unit counted %d frames, want 20", got)
		}
		for _, g := range all {
			if s := g.Stats(); s.Barriers != 11 || s.Nacks != 0 || s.Resent != 0 || s.Duplicates != 0 || s.Late != 0 {
				t.Errorf("%+v: want 11 barriers, and nothing asked for", s)
			}
		}
	})
}

// attached is a link to an interface.
type attached struct {
	transport.Link
	index     int
	namespace string
}

func (a attached) Interface() (index int, namespace string) { return a.index, a.namespace }

// A unit is refused that is on another interface than the link, or in another namespace, though it has
// the link's address: also if the link is wrapped.
func TestOpen_RefusesUnitsOfAnotherInterface(t *testing.T) {
	for _, c := range []struct {
		name      string
		index     int // of the unit's interface; the link's is 7
		namespace string
		at        string // the link's
		want      string
	}{
		{"its own", 7, "1", "1", ""},
		{"the system does not tell the link's namespace", 7, "1", "", ""},
		{"the system does not tell the unit's namespace", 7, "", "1", ""},
		{"another one", 8, "1", "1", "barrier: the unit cannot count: it is on interface 8, and the endpoint's link on " +
			"interface 7, with the same address (open it on the link's interface)"},
		{"of the same number elsewhere", 7, "2", "1", "barrier: the unit cannot count: it is in another network namespace " +
			"than the endpoint's link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var u *unit
			eps := mcdtest.Open(t, 1, mcdtest.Config{Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
				lossy, err := fault.New(attached{l, 7, c.at}, rand.New(rand.NewPCG(1, 1)), fault.Config{})
				if err != nil {
					t.Fatal(err)
				}
				u = newUnit(lossy)
				u.index, u.namespace = c.index, c.namespace
				return lossy
			}})
			s, err := barrier.Open(eps[0], barrier.Config{Unit: u})
			if err == nil {
				err = s.Close()
			}
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, barrier.ErrUnit) || err.Error() != c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A unit is refused that could not count, with the reason.
func TestOpen_RefusesUnits(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  mcdtest.Config
		want string
	}{
		{"keys", mcdtest.Config{Endpoint: mcd.Config{Keys: keyring.New()}}, "barrier: the unit cannot count: it cannot check " +
			"frames that are authenticated (mcd.Config.KeyFile)"},
		{"checksums of headers", mcdtest.Config{Endpoint: mcd.Config{Checksum: mcd.ChecksumHeader}}, "barrier: the unit cannot " +
			"count: it checks arrivals by a checksum of their payloads, which this endpoint leaves out (mcd.Config.Checksum)"},
		{"two networks", mcdtest.Config{NICs: 2}, "barrier: the unit cannot count: it is for one network, and the endpoint has 2"},
		{"another NIC", mcdtest.Config{}, "barrier: the unit cannot count: it is on 02:00:00:00:00:02, and the endpoint's " +
			"link on 02:00:00:00:00:01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var links []transport.Link
			c.cfg.Wrap = func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
				links = append(links, l)
				return l
			}
			eps := mcdtest.Open(t, 2, c.cfg)
			_, err := barrier.Open(eps[0], barrier.Config{Unit: newUnit(links[len(links)-1])})
			if !errors.Is(err, barrier.ErrUnit) || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
