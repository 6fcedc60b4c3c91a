package mpi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// What a multicast tells the others takes no record of its own: after the first there is none.
func TestShare_TellsByMulticasts(t *testing.T) {
	for _, n := range []int{2, 3, maxTold} {
		synctest.Test(t, func(t *testing.T) {
			worlds := openEach(t, mcdtest.Open(t, n, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}),
				Config{Algorithms: []Algorithm{{Operation: "allreduce", Name: byEach}}})
			sums := func(count int) {
				t.Helper()
				inBoth(t, func(c *Comm) error {
					for k := range count {
						sum := []int{0}
						if err := Allreduce(t.Context(), c, []int{k}, sum, Sum); err != nil || sum[0] != n*k {
							return fmt.Errorf("rank %d, %d: %d, %w", c.Rank(), k, sum[0], err)
						}
					}
					return nil
				}, worlds...)
				synctest.Wait()
			}
			sent := func() (records uint64) {
				for _, w := range worlds {
					records += w.Counters().Frames.Sent
				}
				return records
			}
			sums(2)
			for _, w := range worlds { // else it sends one to each as it first waits for it
				w.mu.Lock()
				all := w.expected(matching.AnySource)
				w.mu.Unlock()
				w.expect(all)
			}
			synctest.Wait()
			before := sent()
			if sums(20 * multicastWindow); sent() != before {
				t.Errorf("%d processes: %d frames of records", n, sent()-before)
			}
			for _, w := range worlds {
				w.mu.Lock()
				for k, l := range w.comm.multicasts.root.listeners {
					if k != w.comm.rank && l.has != w.comm.multicasts.root.begun-1 {
						t.Errorf("rank %d has %d, want one less than %d", k, l.has, w.comm.multicasts.root.begun)
					}
				}
				w.mu.Unlock()
			}
			inBoth(t, func(c *Comm) error { return c.w.Close() }, worlds...)
		})
	}
}

// Numbers that come late or to a process that takes no frames yet change nothing.
func TestHearTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		before listener
		told   uint32
		want   listener
	}{
		{"more", listener{met: true, has: 5, heard: 1}, 7, listener{met: true, has: 7, heard: 1}},
		{"the same", listener{met: true, has: 5}, 5, listener{met: true, has: 5}},
		{"late", listener{met: true, has: 5}, 4, listener{met: true, has: 5}},
		{"to a stranger", listener{}, 4, listener{}},
		{"wrapped", listener{met: true, has: 1<<32 - 2, heard: 1<<32 - 2}, 3, listener{met: true, has: 3, heard: 1<<32 - 2}},
		{
			"after many", listener{met: true, has: 5, heard: 1, last: 1}, 1 + 2*multicastAck,
			listener{met: true, has: 1 + 2*multicastAck, heard: 1 + multicastAck, well: 1},
		},
		{
			"by the deaf", listener{met: true, deaf: true, pause: 3, heard: 1}, 100,
			listener{met: true, deaf: true, pause: 3, heard: 1, has: 100},
		},
	} {
		comm := &Comm{multicasts: &multicasts{root: root{listeners: []listener{{}, c.before}}}}
		comm.hearTold(1, c.told)
		if got := comm.multicasts.root.listeners[1]; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	m := &multicasts{root: root{listeners: []listener{{met: true, has: 9}}}}
	if m.hear(0, &wire.Multicast{Kind: wire.Have, Number: 8}); m.root.listeners[0].has != 9 {
		t.Errorf("a Have behind a frame that was sent later: %+v", m.root.listeners[0])
	}
}

// What a multicast tells that comes before its communicator is made here is kept as it was: the
// record's memory is that of others then.
func TestTold_Early(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		c := &Comm{w: w, context: 1000, members: w.comm.members}
		c.place()
		var record []byte
		w.beginMaking()
		w.mu.Lock()
		for _, d := range []*wire.Multicast{
			{Kind: wire.Have, Number: 1}, // it has given up what was not called here
			{Kind: wire.Data, Number: 1, Incarnation: 7, Operation: wire.Operation{Collective: wire.Bcast},
				Told: wire.AppendTold(wire.AppendTold(nil, 1), 0), Data: []byte("x")},
		} {
			d.Context = c.context
			record = wire.AppendMulticast(record[:0], d)
			if err := w.takeMulticast(1, record, true); err != nil {
				t.Fatal(err)
			}
		}
		for k := range record {
			record[k] = 0x41
		}
		w.mu.Unlock()
		w.add(c)
		w.endMaking()
		if l := c.multicasts.root.listeners[1]; !l.met || l.has != 1 {
			t.Errorf("%+v, want one that has 1", l)
		}
		inBoth(t, func(c *Comm) error { return c.w.Close() }, w, other)
	})
}

// Roots that have not heard what they were told, and have given up the multicasts that told it, wait
// in the same Allreduce, before they listen; or one does, and the other has given up its multicast
// without a wait. They ask what the others have, and go on.
func TestTold_Lost(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		lost  func(from, to int) bool
		gives bool // rank 1 gives up one Bcast more, and goes to a barrier
	}{
		{name: "two", n: 2, lost: func(int, int) bool { return true }},
		{name: "three in a circle", n: 3, lost: func(from, to int) bool { return from == (to+1)%3 }},
		{name: "one of two, the other goes on", n: 2, lost: func(_, to int) bool { return to == 0 }, gives: true},
	} {
		for failing := multicastWindow - 2; failing <= multicastWindow+1; failing++ {
			t.Run(fmt.Sprintf("%s, after %d", c.name, failing), bubbled(func(t *testing.T) {
				var lost atomic.Bool
				nodes := make(map[transport.MAC]int)
				worlds := openEach(t, mcdtest.Open(t, c.n, mcdtest.Config{
					Endpoint: mcd.Config{Spin: -1},
					Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
						nodes[l.MAC()] = int(node)
						deaf, err := fault.New(l, rand.New(rand.NewPCG(0, 0)), fault.Config{
							Loss: 1, Match: func(f *transport.Frame) bool {
								return lost.Load() && f.Dst.IsMulticast() && c.lost(nodes[f.Src], int(node))
							},
						})
						if err != nil {
							t.Fatal(err)
						}
						return deaf
					},
				}), Config{Algorithms: []Algorithm{
					{Operation: "bcast", Name: byMulticast}, {Operation: "allreduce", Name: byEach},
				}})
				sum := func(c *Comm, patience time.Duration) error {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					return Allreduce(ctx, c, []int{1}, []int{0}, Sum)
				}
				inBoth(t, func(c *Comm) error { return sum(c, time.Second) }, worlds...)
				synctest.Wait()
				lost.Store(true)
				start := time.Now()
				inBoth(t, func(c *Comm) error {
					for k := range failing {
						_ = sum(c, askAfter/2) // nobody asks
						time.Sleep(time.Until(start.Add(time.Duration(k+1) * askAfter)))
					}
					return nil
				}, worlds...)
				lost.Store(c.gives)
				inBoth(t, func(comm *Comm) error {
					if c.gives {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if comm.rank == 1 {
							cancel()
						}
						if err := Bcast(ctx, comm, []int{1}, 0); err != nil && comm.rank == 0 {
							t.Errorf("the root: %v", err)
						}
						ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if err := comm.Barrier(ctx); err != nil { // no multicast is awaited in it
							return err
						}
					}
					for k := range 2 * multicastWindow {
						if err := sum(comm, time.Minute); err != nil {
							return fmt.Errorf("rank %d, %d: %w", comm.rank, k, err)
						}
					}
					return nil
				}, worlds...)
				inBoth(t, func(c *Comm) error { return c.w.Close() }, worlds...)
			}))
		}
	}
}

func bubbled(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}
