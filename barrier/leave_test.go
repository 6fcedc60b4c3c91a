package barrier_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport/fault"
)

// A node leaves a group of which it has used many masks. What it has completed with all members is
// not forgotten for the masks: a member that has missed the end, and the goodbye, learns it.
func TestClose_OfManyMasksRemembersAll(t *testing.T) {
	const size, masks = 8, 100
	synctest.Test(t, func(t *testing.T) {
		c := open(t, size, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, "concurrent")})
		for bits := range masks {
			o := barrier.Options{Members: barrier.Bits(uint64(bits)<<1 | 1)}
			if _, err := all[0].ArriveWith(o); err != nil {
				t.Fatal(err)
			}
		}
		var tickets []barrier.Ticket
		for _, g := range all[1:] {
			tickets = append(tickets, arrive(t, g, barrier.Options{}))
		}
		c.faults[1][0].Cut(true)
		if err := all[0].Barrier(limit(t)); err != nil {
			t.Fatal(err)
		}
		_ = all[0].Close()
		c.faults[1][0].Cut(false)
		for k, ticket := range tickets {
			if err := ticket.Wait(limit(t)); err != nil {
				t.Errorf("node %d: %v", k+1, err)
			}
		}
	})
}

// A node that has closed a group in which it has waited asks nobody any more for what is missing.
func TestClose_AsksNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{})
		arrive(t, all[0], barrier.Options{})
		_ = all[0].Close()
		time.Sleep(time.Second)
		sent := c.eps[0].LinkCounters(0).TxFrames
		time.Sleep(time.Minute)
		if more := c.eps[0].LinkCounters(0).TxFrames - sent; more > 0 {
			t.Errorf("%d frames more", more)
		}
	})
}

// Nobody waits for a goodbye to be heard that has nobody to miss it: a node answers that has not made the
// group.
func TestClose_OfAGroupThatOthersLack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, 1, fault.Config{}, 0)
		g := group(t, c.services[0], barrier.GroupConfig{})
		arrive(t, g, barrier.Options{})
		begun := time.Now()
		_ = g.Close()
		if took := time.Since(begun); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
}

// Thousands of goroutines are in barriers of two services, several groups and all numbers, with contexts
// that end now and then; masks are made, survivors' groups, too, and then everything is closed at once.
// Each wait ends with one of the documented errors, and nothing is left behind.
func TestManyCallers(t *testing.T) {
	const size, groups, rounds = 2, 4, 3
	numbers := barrier.Numbers
	if testing.Short() {
		numbers /= 8
	}
	synctest.Test(t, func(t *testing.T) {
		first := open(t, size, 1, fault.Config{Loss: .01, Duplicate: .01}, 3)
		second := &cluster{eps: first.eps}
		for _, e := range first.eps {
			second.services = append(second.services, service(t, e, barrier.Config{Port: 200}))
		}
		t.Cleanup(func() { closeAll(second.services) })
		var calling sync.WaitGroup
		var passed atomic.Int64
		call := func(g *barrier.Group, o barrier.Options) {
			defer calling.Done()
			for round := 0; round < 1000; round++ {
				time.Sleep(time.Millisecond) // work
				ctx := limit(t)
				if round%2 == int(o.Number)%2 {
					ctx = shorter(t, ctx, 50*time.Millisecond)
				}
				switch err := g.BarrierWith(ctx, o); {
				case err == nil:
					passed.Add(1)
				case errors.Is(err, barrier.ErrIncomplete): // and resumed
				case errors.Is(err, barrier.ErrClosed), errors.Is(err, barrier.ErrNodeDown):
					return
				default:
					t.Error(err)
					return
				}
			}
			if o.Members.IsZero() {
				t.Errorf("number %d goes on though the other node has left", o.Number)
			}
		}
		for id := range uint32(groups) {
			for _, c := range []*cluster{first, second} {
				for k, g := range c.groups(t, barrier.GroupConfig{ID: id, PeerTimeout: time.Second}) {
					calling.Add(numbers + 1)
					for n := range numbers {
						go call(g, barrier.Options{Number: uint8(n)})
					}
					go call(g, barrier.Options{Number: 1, Members: barrier.MaskOf(mcd.NodeID(k))})
				}
			}
		}
		time.Sleep(20 * time.Millisecond)
		closeAll(append(slices.Clone(first.services), second.services[1]))
		calling.Wait()
		if least := int64(2 * 2 * groups * numbers * rounds); passed.Load() < least {
			t.Errorf("%d barriers were passed, want %d at least", passed.Load(), least)
		}
	})
}

// A program closes its groups one by one, as another goroutine of it closes the service: one that
// waits for a goodbye to a member that is gone, and several that are closed already. Where those
// count as goodbyes, too, the service's Close panics now and then, and always races.
func TestClose_OfTheServiceBesideItsGroups(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			s := service(t, eps[0], barrier.Config{})
			all := []*barrier.Group{group(t, s, barrier.GroupConfig{})}
			for range 8 {
				all = append(all, group(t, s, barrier.GroupConfig{Members: barrier.MaskOf(0)}))
			}
			if err := eps[1].Close(); err != nil {
				t.Fatal(err)
			}
			var closing sync.WaitGroup
			closing.Go(func() {
				for _, g := range all {
					if err := g.Close(); err != nil {
						t.Error(err)
					}
				}
			})
			synctest.Wait() // until it says goodbye
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			closing.Wait()
		})
	}
}

// A member that has entered, and says goodbye before the others have, is not said to have stayed
// away.
func TestClose_OfOneThatHasEntered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 3, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{Algorithm: parse(t, "star")})
		arrive(t, all[2], barrier.Options{})
		got, err := all[0].Status(limit(t), 0)
		if err != nil || got[2].Presence != barrier.Entered {
			t.Fatalf("%v, %v", got, err)
		}
		_ = all[2].Close()
		const want = "barrier 0, generation 1: node 2: said goodbye before they had completed it"
		if err := all[0].Barrier(limit(t)); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	})
}
