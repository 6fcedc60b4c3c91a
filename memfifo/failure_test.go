package memfifo_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// full makes a FIFO at node 1, and fills it from node 0 until one more record is held up.
func (c *cluster) full(t *testing.T, id uint16) *memfifo.FIFO {
	t.Helper()
	q, err := c.domains[1].NewFIFO(id, make([]byte, memfifo.MinFIFO))
	must(t, err)
	r := c.domains[0].Remote(q.Key())
	for err == nil {
		err = r.TryPush(limit(t), make([]byte, 20))
	}
	if !errors.Is(err, memfifo.ErrFull) {
		t.Fatal(err)
	}
	must(t, r.Push(limit(t), make([]byte, 20)))
	return q
}

// A peer dies, leaves, or restarts unseen, with every kind of operation pending. Each ends with
// ErrPeerDown, at once if the peer could say that it leaves. Other peers go on, and after a Flush
// so does the peer's successor.
func TestFailure_EndsAllThatIsUnderWay(t *testing.T) {
	for _, how := range []string{"dies", "leaves", "restarts"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, 3, -1, fault.Config{}, 0)
				ctx := limit(t)
				d := c.domains[0]
				w := c.window(t, 1, 1<<20)
				other := c.window(t, 2, 64)
				q := c.full(t, 1)
				r, push := d.Remote(w.Key()), d.Remote(q.Key())
				parcels := make([]*memfifo.Parcel, 3)
				for i := range parcels {
					parcels[i] = &memfifo.Parcel{To: r, Data: make([]byte, 1<<20)}
				}
				begun := time.Now()
				var waiting sync.WaitGroup
				for name, do := range map[string]func() error{
					"Get":      func() error { return r.Get(ctx, 0, make([]byte, 1<<20)) },
					"FetchAdd": func() error { _, err := r.FetchAdd(ctx, 0, 1); return err },
					"TryPush":  func() error { return push.TryPush(ctx, []byte{1}) },
					"Put":      func() error { return r.Put(ctx, 0, make([]byte, 1<<20)) },
					"Push": func() error {
						for {
							if err := push.Push(ctx, make([]byte, 20)); err != nil {
								return err
							}
						}
					},
					"parcels": func() error {
						for _, q := range parcels {
							err := errors.Join(q.WaitRemote(ctx), q.Wait(ctx)) // not the test's, which goes on meanwhile
							if !errors.Is(err, memfifo.ErrPeerDown) {
								t.Errorf("%v", err)
							}
						}
						return parcels[0].WaitRemote(ctx)
					},
				} {
					if name == "parcels" {
						must(t, d.Post(parcels...))
					}
					waiting.Go(func() {
						if err := do(); !errors.Is(err, memfifo.ErrPeerDown) {
							t.Errorf("%s: %v", name, err)
						}
					})
				}
				synctest.Wait()
				c.faults[1].Cut(how != "leaves")
				if how != "dies" {
					must(t, c.domains[1].Close())
					c.reopen(t, 1)
					w = c.window(t, 1, 64)
				}
				c.faults[1].Cut(how == "dies")
				r2 := d.Remote(other.Key())
				for range 100 { // the rest goes on
					if _, err := r2.FetchAdd(ctx, 0, 1); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(begun); took > memfifo.DefaultPeerTimeout {
					t.Errorf("others had to wait %v", took)
				}
				waiting.Wait()
				if took := time.Since(begun); took > 2*memfifo.DefaultPeerTimeout || how == "leaves" && took > 10*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				down, ok := errors.AsType[*memfifo.PeerDownError](d.Flush(ctx))
				want := map[string]memfifo.Reason{"dies": memfifo.Silent, "leaves": memfifo.Left, "restarts": memfifo.Restarted}[how]
				if !ok || down.Node != 1 || down.Reason != want {
					t.Errorf("Flush: %v", down)
				}
				must(t, d.Flush(ctx))
				c.faults[1].Cut(false)
				must(t, d.Remote(w.Key()).Put(ctx, 0, []byte{42}))
				must(t, d.Flush(ctx))
				if w.Bytes()[0] != 42 {
					t.Error("not in place")
				}
			})
		})
	}
}

// A peer goes away and comes back in the middle of a long Put or Push, while others flush. The
// operation ends with ErrPeerDown, and does not go on as if its first half were there.
func TestFailure_NothingGoesOnBehindALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		d := c.domains[0]
		w := c.window(t, 1, 1<<21)
		q, err := c.domains[1].NewFIFO(9, make([]byte, 1<<19))
		must(t, err)
		c.full(t, 1)
		var ended sync.WaitGroup
		for name, do := range map[string]func() error{
			"Put": func() error { return d.Remote(w.Key()).Put(ctx, 0, make([]byte, 1<<21)) },
			"Push": func() error {
				for {
					if err := d.Remote(q.Key()).Push(ctx, make([]byte, memfifo.MaxRecord)); err != nil {
						return err
					}
				}
			},
		} {
			ended.Go(func() {
				if err := do(); !errors.Is(err, memfifo.ErrPeerDown) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		synctest.Wait()
		for range 3 { // each Flush clears the way for what comes after it
			ended.Go(func() { _ = d.Flush(ctx) })
		}
		c.faults[1].Cut(true)
		ended.Wait()
		c.faults[1].Cut(false)
		_ = d.Flush(ctx)
		must(t, d.Flush(ctx))
	})
}

// A context ends a Push that waits for room, but not one that has begun, whose record is there in
// the end.
func TestFailure_ContextsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		d := c.domains[0]
		w := c.window(t, 1, 1<<20)
		q := c.full(t, 1)
		r, push := d.Remote(w.Key()), d.Remote(q.Key())
		pushed := 3 // two are in the FIFO, one waits
		ended := 0
		for ended < 20 { // what waits for an answer, or for room
			soon, cancel := context.WithTimeout(ctx, time.Millisecond)
			switch err := push.Push(soon, make([]byte, 20)); {
			case err == nil:
				pushed++
			case errors.Is(err, context.DeadlineExceeded):
				ended++
			default:
				t.Fatal(err)
			}
			cancel()
		}
		for name, do := range map[string]func(context.Context) error{
			"Put":      func(ctx context.Context) error { return r.Put(ctx, 0, make([]byte, 10)) },
			"Get":      func(ctx context.Context) error { return r.Get(ctx, 0, make([]byte, 10)) },
			"FetchAdd": func(ctx context.Context) error { _, err := r.FetchAdd(ctx, 0, 1); return err },
			"Flush":    func(ctx context.Context) error { return d.Flush(ctx) },
		} {
			soon, cancel := context.WithTimeout(ctx, time.Millisecond)
			if err := do(soon); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		b := make([]byte, 20)
		for i := range pushed {
			if _, err := q.Pop(ctx, b); err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
		}
		must(t, d.Flush(ctx))
		if _, ok, err := q.TryPop(b); ok || err != nil {
			t.Errorf("one record more than were pushed: %v", err)
		}
		if old, err := r.FetchAdd(ctx, 0, 1); old != 0 || err != nil {
			t.Errorf("%d, %v: what had not begun was done", old, err)
		}
	})
}

// Nothing is lost with a node that had acknowledged all that it was sent without a reply.
func TestPeerDown_WhatWasAcknowledgedIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, fault.Config{}, 0, 64)
		must(t, r.Put(ctx, 0, []byte{1}))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if w.Bytes()[0] != 1 {
			t.Fatal("the put has not arrived")
		}
		c.faults[1].Cut(true)
		_, err := r.FetchAdd(ctx, 0, 1)
		var down *memfifo.PeerDownError
		if !errors.As(err, &down) || down.Lost {
			t.Errorf("%v, want that the node is down, and nothing lost", err)
		}
	})
}

// Nor is it where the node leaves, and where one that is probed as it is expected falls silent: both
// have the connection forget what was acknowledged.
func TestPeerDown_WhatWasAcknowledgedBeforeTheEnd(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, ctx context.Context, c *cluster, q *memfifo.FIFO){
		"it leaves": func(t *testing.T, _ context.Context, c *cluster, _ *memfifo.FIFO) {
			must(t, c.domains[1].Close())
			time.Sleep(time.Second)
		},
		"it is silent": func(t *testing.T, ctx context.Context, c *cluster, q *memfifo.FIFO) {
			must(t, c.faults[1].SetConfig(fault.Config{Loss: 1}))
			if _, err := q.Pop(ctx, nil); !errors.Is(err, memfifo.ErrPeerDown) {
				t.Errorf("Pop: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, ctx, w, r := twoNodes(t, fault.Config{}, 0, 64)
				q := c.fifo(t, 0, 1<<10)
				must(t, q.Expect(1))
				must(t, r.Put(ctx, 0, []byte("x")))
				time.Sleep(time.Second)
				synctest.Wait()
				if w.Bytes()[0] != 'x' {
					t.Error("the put has not arrived")
				}
				end(t, ctx, c, q)
				down, ok := errors.AsType[*memfifo.PeerDownError](c.domains[0].Flush(ctx))
				if !ok || down.Lost {
					t.Errorf("%v, want that nothing is lost", down)
				}
			})
		})
	}
}

// Nor is it where the node falls silent as a reply is under way to it.
func TestPeerDown_WhatWasAcknowledgedBeforeAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, fault.Config{}, 0, 8)
		mine := c.domains[1].Remote(c.window(t, 0, 8).Key())
		must(t, r.Put(ctx, 0, []byte("x")))
		must(t, mine.Get(ctx, 0, make([]byte, 8)))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if w.Bytes()[0] != 'x' {
			t.Error("the put has not arrived")
		}
		must(t, c.faults[1].SetConfig(fault.Config{Loss: 1}))
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := mine.Get(soon, 0, make([]byte, 8)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get: %v", err)
		}
		must(t, c.faults[0].SetConfig(fault.Config{Loss: 1}))
		time.Sleep(10 * time.Second)
		down, ok := errors.AsType[*memfifo.PeerDownError](c.domains[0].Flush(ctx))
		if !ok || down.Lost {
			t.Errorf("%v, want that nothing is lost", down)
		}
	})
}
