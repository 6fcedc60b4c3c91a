package mpi

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi/internal/consensus"
	"github.com/rawlane/rawlane/mpi/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// freeing runs a test of n worlds, over links with faults, and of a communicator of all of them.
func freeing(
	t *testing.T, n int, faults fault.Config, test func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		links := make([]*fault.Link, n)
		var worlds []*World
		for _, ep := range mcdtest.Open(t, n, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				f, err := fault.New(l, rand.New(rand.NewPCG(1, uint64(node))), faults)
				if err != nil {
					t.Fatal(err)
				}
				links[node] = f
				return f
			},
		}) {
			w, err := Open(ep, Config{})
			if err != nil {
				t.Fatal(err)
			}
			worlds = append(worlds, w)
		}
		d := make([]*Comm, n)
		inBoth(t, func(c *Comm) (err error) { d[c.Rank()], err = c.Dup(t.Context()); return err }, worlds...)
		test(t, worlds, links, d)
		var closing sync.WaitGroup
		for k, w := range worlds {
			_ = links[k].SetConfig(fault.Config{})
			closing.Go(func() { _ = w.Close() })
		}
		closing.Wait()
	})
}

// What comes after Free is dropped, and its credit given back: other communicators go on.
func TestFree_LateMessages(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm) {
		for _, l := range links {
			l.Cut(true)
		}
		for k := range d {
			for range headers {
				if err := Bsend(d[k], []byte{1}, 1-k, 0); err != nil {
					t.Fatal(err)
				}
			}
			d[k].Revoke()
			if err := d[k].Free(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range links {
			l.Cut(false)
		}
		inBoth(t, func(c *Comm) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for range 3 { // nobody receives before it has sent
				if err := Send(ctx, c, []byte{1}, 1-c.Rank(), 0); err != nil {
					return err
				}
			}
			_, err := Recv(ctx, c, make([]byte, 1), 1-c.Rank(), 0)
			return err
		}, worlds...)
		for k, w := range worlds {
			if n := w.Counters(); n.Kept > 10 || n.Malformed > 0 {
				t.Errorf("rank %d: %d messages were kept, %d records are malformed", k, n.Kept, n.Malformed)
			}
		}
	})
}

// A process that has freed a communicator still tells others what was agreed in it.
func TestFree_BehindAnAgreement(t *testing.T) {
	freeing(t, 3, fault.Config{}, func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm) {
		d[1].Revoke()
		synctest.Wait()
		done := make(chan error, 2)
		go func() {
			_, err := d[1].Agree(t.Context(), 1)
			done <- errors.Join(err, d[1].Free(t.Context()))
		}()
		go func() { _, err := d[2].Agree(t.Context(), 1); done <- err }()
		synctest.Wait()
		links[0].Cut(true) // rank 0 dies, and its last record has come to rank 1 alone
		worlds[1].mu.Lock()
		err := d[1].handle(0, &wire.Comm{Context: d[1].context, Message: consensus.Message{
			Kind: consensus.Decide, Number: 1, Value: consensus.Value{Flags: 1},
		}})
		worlds[1].run()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Minute):
				t.Fatal("rank 2 waits for an answer")
			}
		}
	})
}

// A send whose wait has ended does not hinder Free, though it is not complete.
func TestFree_BehindASendThatWasAbandoned(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Send(short, d[0], make([]byte, 100_000), 1, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		inBoth(t, func(c *Comm) error { return d[c.Rank()].Free(t.Context()) }, worlds...)
	})
}

// An Agree that waits while its communicator is freed ends with the world at the latest.
func TestFree_WhileAnAgreementWaits(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		done := make(chan error, 1)
		go func() { _, err := d[0].Agree(context.Background(), 1); done <- err }()
		synctest.Wait()
		d[0].Revoke()
		if err := errors.Join(d[0].Free(t.Context()), worlds[0].Close()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// Free waits for all, and a Revoke ends its wait.
func TestFree_Waits(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		e := make([]*Comm, 2)
		inBoth(t, func(c *Comm) (err error) { e[c.Rank()], err = c.Dup(t.Context()); return err }, worlds...)
		begun := time.Now()
		inBoth(t, func(c *Comm) error {
			time.Sleep(time.Second * time.Duration(c.Rank()))
			err := d[c.Rank()].Free(t.Context())
			if took := time.Since(begun); took < time.Second {
				t.Errorf("rank %d has freed it after %v", c.Rank(), took)
			}
			return err
		}, worlds...)
		done := make(chan error, 1)
		go func() { done <- e[0].Free(t.Context()) }()
		synctest.Wait()
		e[0].Revoke()
		if err := <-done; !errors.Is(err, ErrRevoked) {
			t.Errorf("a Free that was revoked: %v", err)
		}
		synctest.Wait()
		if !e[1].Revoked() {
			t.Error("the other process has not heard of it")
		}
	})
}

// What waits for a message of a communicator that is freed ends, and a message that was taken in it
// goes nowhere.
func TestFree_EndsProbes(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		ctx := t.Context()
		inBoth(t, func(c *Comm) error {
			me, other := d[c.Rank()], 1-c.Rank()
			if err := Send(ctx, me, []byte{1}, other, 0); err != nil {
				return err
			}
			m, err := me.Mprobe(ctx, other, 0)
			if err != nil {
				return err
			}
			probed := make(chan error)
			go func() { _, err := me.Probe(ctx, other, 1); probed <- err }()
			time.Sleep(time.Second)
			if err := me.Free(ctx); err != nil {
				return err
			}
			if err := <-probed; !errors.Is(err, ErrFreed) {
				t.Errorf("a probe: %v", err)
			}
			if _, err := MRecv(ctx, m, make([]byte, 1)); !errors.Is(err, ErrFreed) {
				t.Errorf("a message that was taken: %v", err)
			}
			return nil
		}, worlds...)
	})
}

// A world that closes waits until a window that was freed alone has told the others.
func TestFree_OfAWindowThatHasToTell(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		var v [2]*Win[int]
		inBoth(t, func(c *Comm) (err error) { v[c.Rank()], err = NewWin(t.Context(), c, make([]int, 1)); return err }, worlds...)
		w, m := worlds[0], v[0].members[1]
		w.mu.Lock()
		m.busy = true // as while its records wait for room
		w.mu.Unlock()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := v[0].Free(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(m.queue) == 0 || !w.sending() {
			t.Errorf("%d records are queued; sending: %v", len(m.queue), w.sending())
		}
		m.queue, m.busy = nil, false
		if w.sending() || len(w.leaving) > 0 {
			t.Error("it is not forgotten")
		}
	})
}

// A wait that spins asks the context of a barrier for its error: a Revoke is one.
func TestRevocable_Err(t *testing.T) {
	unrevoked, revoke := context.WithCancel(t.Context())
	ctx := &revocable{Context: t.Context(), unrevoked: unrevoked}
	before := ctx.Err()
	if revoke(); before != nil || ctx.Err() == nil {
		t.Errorf("before it %v, then %v", before, ctx.Err())
	}
}

// A Free does not return by the barrier of others that this process has entered before, and whose
// context has ended.
func TestFree_BehindABarrier(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		start := time.Now()
		inBoth(t, func(c *Comm) error {
			d := d[c.Rank()]
			if c.Rank() == 1 {
				time.Sleep(2 * time.Second)
				err := d.Barrier(t.Context())
				time.Sleep(2 * time.Second)
				return errors.Join(err, d.Free(t.Context()))
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := d.Barrier(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			err := d.Free(t.Context())
			if after := time.Since(start); after < 4*time.Second {
				t.Errorf("freed after %v, before the other one", after)
			}
			return err
		}, worlds...)
	})
}
