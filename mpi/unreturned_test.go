package mpi

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/transport/fault"
)

// leaving is a context that does in a wait what a function of another port's may do which the wait
// polls: it does not return.
type leaving struct {
	context.Context
	leave func()
}

func (c leaving) Done() <-chan struct{} { c.leave(); return nil }

// eachLeave runs a test for both ways not to return, in three processes. unreturned runs a call with
// a context by which its wait does not return.
func eachLeave(t *testing.T, test func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context)))) {
	for name, leave := range noreturn.Ways {
		t.Run(name, func(t *testing.T) {
			freeing(t, 3, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
				test(t, worlds, d, func(call func(context.Context)) {
					over := make(chan bool)
					go func() {
						defer close(over)
						defer func() { _ = recover() }()
						call(leaving{t.Context(), leave})
						t.Error("the call has returned")
					}()
					<-over
				})
			})
		})
	}
}

// Who waits with World.mu given back has it again where the wait does not return: nothing is
// unlocked twice, which would end the process, and nothing of the wait is left.
func TestUnreturned_ProbesAndWindows(t *testing.T) {
	eachLeave(t, func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context))) {
		win := make([]*Win[int], len(d))
		inBoth(t, func(c *Comm) (err error) {
			win[c.Rank()], err = NewWin(t.Context(), d[c.Rank()], make([]int, 1))
			return err
		}, worlds...)
		unreturned(func(ctx context.Context) { _, _ = d[0].Probe(ctx, 1, 0) })
		unreturned(func(ctx context.Context) { _ = win[0].Start(ctx, 1) })
		if err := win[0].Post(1); err != nil {
			t.Fatal(err)
		}
		unreturned(func(ctx context.Context) { _ = win[0].Wait(ctx) })
		worlds[0].mu.Lock()
		if len(worlds[0].probes) > 0 || len(win[0].waiters) > 0 {
			t.Errorf("%d probes and %d waits are left", len(worlds[0].probes), len(win[0].waiters))
		}
		worlds[0].mu.Unlock()
		inBoth(t, func(c *Comm) error { // the epoch goes on
			switch c.Rank() {
			case 0:
				return win[0].Wait(t.Context())
			case 1:
				return errors.Join(win[1].Start(t.Context(), 0), win[1].Complete())
			}
			return nil
		}, worlds...)
		unreturned(func(ctx context.Context) { _ = win[0].Fence(ctx) })
		if err := win[0].Fence(t.Context()); !errors.Is(err, errUnreturned) {
			t.Errorf("a fence behind one that has not returned: %v", err)
		}
		unreturned(func(ctx context.Context) { _ = win[1].Free(ctx) })
		if err := win[1].Free(t.Context()); !errors.Is(err, ErrFreed) {
			t.Errorf("a free behind one that has not returned: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := errors.Join(win[0].Free(ctx), win[2].Free(ctx)); ctx.Err() != nil || !errors.Is(err, ErrFreed) {
			t.Errorf("the others' free: %v", err)
		}
	})
}

// A lock whose wait for another's does not return is not held, nor one of several: others have it.
func TestUnreturned_Locks(t *testing.T) {
	eachLeave(t, func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context))) {
		win := make([]*Win[int], len(d))
		inBoth(t, func(c *Comm) (err error) {
			win[c.Rank()], err = NewWin(t.Context(), d[c.Rank()], make([]int, 1))
			return errors.Join(err, win[c.Rank()].Fence(t.Context()))
		}, worlds...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := win[2].Lock(ctx, 1, Exclusive); err != nil {
			t.Fatal(err)
		}
		unreturned(func(ctx context.Context) { _ = win[0].Lock(ctx, 1, Exclusive) })
		unreturned(func(ctx context.Context) { _ = win[0].LockAll(ctx) })
		if err := win[2].Unlock(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if len(win[0].calls) > 0 || win[0].holdsLock() {
			t.Errorf("%d calls are left; a lock is held: %t", len(win[0].calls), win[0].holdsLock())
		}
		for rank := range win {
			err := errors.Join(win[2].Lock(ctx, rank, Exclusive), win[2].Unlock(ctx, rank),
				win[0].Lock(ctx, rank, Exclusive), win[0].Unlock(ctx, rank))
			if err != nil {
				t.Error(err)
			}
		}
		inBoth(t, func(c *Comm) error { return win[c.Rank()].Free(ctx) }, worlds...)
	})
}

// What a call was to send or to receive that does not return has its memory no more.
func TestUnreturned_Messages(t *testing.T) {
	eachLeave(t, func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context))) {
		for _, size := range []int{8, 64 << 10} { // kept, and written or read by the other process
			memory, data := make([]byte, size), bytes.Repeat([]byte{1}, size)
			unreturned(func(ctx context.Context) { _, _ = Recv(ctx, d[0], memory, 1, 0) })
			unreturned(func(ctx context.Context) {
				_, _ = Sendrecv(ctx, d[0], data, 1, 1, memory, 1, 0)
			})
			unreturned(func(ctx context.Context) { _ = Ssend(ctx, d[0], data, 1, 2) })
			inBoth(t, func(c *Comm) error {
				c = d[c.Rank()]
				switch c.Rank() {
				case 0:
					_, err := Recv(t.Context(), c, make([]byte, size), 1, 0)
					return err
				case 1:
					return Send(t.Context(), c, data, 0, 0)
				}
				return nil
			}, worlds...)
			if bytes.Contains(memory, []byte{1}) {
				t.Errorf("%d bytes: a message has come to who waits no more", size)
			}
			_, err := Recv(t.Context(), d[1], make([]byte, size), 0, 2)
			if size > DefaultEagerLimit != errors.Is(err, ErrWithdrawn) {
				t.Errorf("%d bytes: the message that was given up: %v", size, err)
			}
		}
		worlds[0].mu.Lock()
		defer worlds[0].mu.Unlock()
		for r := worlds[0].active; r != nil; r = r.next {
			if !r.withdrawn {
				t.Errorf("%+v is left", r)
			}
		}
	})
}

// A collective operation that does not return is over: nothing comes to its memory, and those that
// follow are of all.
func TestUnreturned_Collectives(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *Comm, memory []int) error{
		"bcast": func(ctx context.Context, c *Comm, memory []int) error { return Bcast(ctx, c, memory[:1], 1) },
		"gather": func(ctx context.Context, c *Comm, memory []int) error {
			return Gather(ctx, c, []int{min(7, 7*c.Rank())}, memory, 0)
		},
		"allreduce": func(ctx context.Context, c *Comm, memory []int) error {
			return Allreduce(ctx, c, []int{7}, memory[:1], Sum)
		},
		"long": func(ctx context.Context, c *Comm, memory []int) error {
			return Gather(ctx, c, slices.Repeat([]int{min(7, 7*c.Rank())}, 10_000), memory, 0)
		},
	} {
		eachLeave(t, func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context))) {
			memory := make([]int, 30_000)
			unreturned(func(ctx context.Context) {
				if name == "long" {
					_ = call(ctx, d[0], memory)
				} else {
					_ = call(ctx, d[0], memory[:3])
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			inBoth(t, func(c *Comm) error {
				if c = d[c.Rank()]; c.Rank() == 0 {
					return nil
				}
				_ = call(ctx, c, slices.Repeat([]int{7}, 3)) // rank 0 may be missing in it
				return nil
			}, worlds...)
			if slices.Contains(memory, 7) {
				t.Errorf("%s: an operation that is over has written", name)
			}
			inBoth(t, func(c *Comm) (err error) {
				c = d[c.Rank()]
				for k := 0; k < 3*multicastWindow && err == nil; k++ {
					sum := []int{0}
					if err = Allreduce(t.Context(), c, []int{1}, sum, Sum); sum[0] != 3 {
						t.Errorf("%s: the sum is %d", name, sum[0])
					}
					err = errors.Join(err, Bcast(t.Context(), c, sum, k%3))
				}
				return errors.Join(err, c.Free(t.Context()))
			}, worlds...)
		})
	}
}

// A root whose wait for room does not return has not sent its multicast, and says so.
func TestUnreturned_Root(t *testing.T) {
	eachLeave(t, func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context))) {
		if err := Bcast(t.Context(), d[0], []int{1}, 0); err != nil {
			t.Fatal(err)
		}
		unreturned(func(ctx context.Context) { _ = Bcast(ctx, d[0], []int{2}, 0) })
		inBoth(t, func(c *Comm) error {
			b := []int{0}
			if c = d[c.Rank()]; c.Rank() > 0 {
				if err := Bcast(t.Context(), c, b, 0); err != nil || b[0] != 1 {
					t.Errorf("the first: %v, %v", b, err)
				}
				if err := Bcast(t.Context(), c, b, 0); !errors.Is(err, ErrWithdrawn) {
					t.Errorf("the one that was given up: %v, %v", b, err)
				}
			}
			return Bcast(t.Context(), c, []int{3}, 0)
		}, worlds...)
	})
}

// once is a context that does something in the first wait, and then ends that one's goroutine.
type once struct {
	context.Context
	first atomic.Bool
	leave func()
}

func (c *once) Done() <-chan struct{} {
	if !c.first.Swap(true) {
		c.leave()
	}
	return c.Context.Done()
}

// What goes to other processes goes on where a goroutine that waits for room is ended: by another
// one, or, where it is not known what has gone, the process is given up, on both sides.
func TestUnreturned_Senders(t *testing.T) {
	type test func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm)
	for name, test := range map[string]test{
		"a record": func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm) {
			worlds[0].ended = &once{Context: worlds[0].ended, leave: runtime.Goexit}
			links[1].Cut(true)
			var sends []*Request
			for range 100 {
				sends = append(sends, Isend(d[0], make([]byte, 8<<10), 1, 0))
			}
			if err := WaitAll(t.Context(), sends...); !errors.Is(err, errUnreturned) {
				t.Errorf("sends: %v", err)
			}
			links[1].Cut(false)
			if _, err := Recv(t.Context(), d[1], make([]byte, 1), 0, 1); !errors.Is(err, ErrProcessFailed) {
				t.Errorf("the other process: %v", err)
			}
		},
		"a read": func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm) {
			leave := func() { links[1].Cut(false); runtime.Goexit() }
			worlds[0].fetching = &once{Context: worlds[0].fetching, leave: leave}
			s := Isend(d[1], make([]byte, 1<<20), 0, 0)
			synctest.Wait()
			links[1].Cut(true)
			if _, err := Recv(t.Context(), d[0], make([]byte, 1<<20), 1, 0); !errors.Is(err, errUnreturned) {
				t.Errorf("the receive: %v", err)
			}
			if _, err := s.Wait(t.Context()); err != nil {
				t.Errorf("the send: %v", err)
			}
		},
		"a window's record": func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm) {
			win := make([]*Win[int], len(d))
			inBoth(t, func(c *Comm) (err error) {
				win[c.Rank()], err = NewWin(t.Context(), d[c.Rank()], make([]int, 1<<20))
				return errors.Join(err, win[c.Rank()].Fence(t.Context()))
			}, worlds...)
			links[1].Cut(true)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := win[0].Put(ctx, make([]int, 1<<20), 1, 0); ctx.Err() == nil {
				t.Errorf("there is room: %v", err)
			}
			worlds[0].ended = &once{Context: worlds[0].ended, leave: runtime.Goexit}
			if err := win[0].Post(1); err != nil {
				t.Error(err)
			}
			if err := win[0].Wait(t.Context()); !errors.Is(err, errUnreturned) {
				t.Errorf("the exposure: %v", err)
			}
			links[1].Cut(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			freeing(t, 3, fault.Config{}, func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm) {
				test(t, worlds, links, d)
				if err := Send(t.Context(), d[0], []byte{1}, 2, 0); err != nil {
					t.Errorf("to a third process: %v", err)
				}
				if _, err := Recv(t.Context(), d[2], make([]byte, 1), 0, 0); err != nil {
					t.Errorf("of a third process: %v", err)
				}
			})
		})
	}
}

// A communicator whose Free does not return, and a window whose making does not, are ended here
// alone: nothing is left of them, and the others hear it.
func TestUnreturned_FreeAndNewWin(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *Comm) error{
		"free": func(ctx context.Context, c *Comm) error { return c.Free(ctx) },
		"window": func(ctx context.Context, c *Comm) error {
			_, err := NewWin(ctx, c, make([]int, 1))
			return err
		},
	} {
		for _, ready := range []bool{false, true} { // who leaves has the keys of all
			eachLeave(t, func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context))) {
				w, left := worlds[0], make(chan bool)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				inBoth(t, func(c *Comm) error {
					if c.Rank() > 0 {
						if name == "free" { // else it might not have to wait
							<-left
						}
						_ = call(ctx, d[c.Rank()]) // may be over
						return nil
					}
					defer close(left)
					unreturned(func(ctx context.Context) {
						_ = call(leaving{t.Context(), func() {
							w.mu.Lock()
							now := name == "free" || len(w.comms) == 3 && (!ready || len(w.windows) == 1)
							w.mu.Unlock()
							if now {
								ctx.Done()
							}
						}}, d[0])
					})
					return nil
				}, worlds...)
				if ctx.Err() != nil {
					t.Errorf("%s: the others have waited", name)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				comms := len(w.comms) - 1 // the world's
				if name == "window" {
					comms-- // and that which it was to be made of
				}
				lent := int(w.spare.made) - len(w.spare.windows)
				if comms > 0 || len(w.windows) > 0 || lent > 0 || name == "window" && len(d[0].windows) > 0 {
					t.Errorf("%s: %d communicators, %d windows and %d pieces of memory are left", name, comms, len(w.windows), lent)
				}
			})
		}
	}
}

// A request of a window whose wait for room does not return, or for answers, and a wait for one of
// several requests, leave nothing behind.
func TestUnreturned_LeavesNothing(t *testing.T) {
	freeing(t, 3, fault.Config{}, func(t *testing.T, worlds []*World, links []*fault.Link, d []*Comm) {
		unreturned := func(call func(ctx context.Context)) {
			defer func() { _ = recover() }()
			call(leaving{t.Context(), func() { panic("by the test") }})
			t.Error("the call has returned")
		}
		win := make([]*Win[int], len(d))
		inBoth(t, func(c *Comm) (err error) {
			win[c.Rank()], err = NewWin(t.Context(), d[c.Rank()], make([]int, 1<<20))
			return errors.Join(err, win[c.Rank()].Fence(t.Context()))
		}, worlds...)
		for _, rank := range []int{1, 2} {
			if err := win[0].Accumulate(t.Context(), []int{1}, rank, 0, Add); err != nil {
				t.Error(err)
			}
		}
		links[1].Cut(true)
		unreturned(func(ctx context.Context) { _ = win[0].FlushAll(ctx) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := win[0].Put(ctx, make([]int, 1<<20), 1, 0); ctx.Err() == nil {
			t.Errorf("there is room: %v", err)
		}
		unreturned(func(ctx context.Context) { _ = win[0].FlushAll(ctx) })
		unreturned(func(ctx context.Context) { _, _ = win[0].FetchAndOp(ctx, 1, 1, 0, Add) })
		if n := len(win[0].calls); n > 0 {
			t.Errorf("%d calls are left", n)
		}
		links[1].Cut(false)
		if err := win[0].FlushAll(t.Context()); err != nil {
			t.Error(err)
		}

		r := Irecv(d[0], make([]byte, 1), 1, 0)
		unreturned(func(ctx context.Context) { _, _, _ = WaitAny(ctx, r, Irecv(d[0], make([]byte, 1), 1, 1)) })
		if len(r.any) > 0 {
			t.Errorf("%d waits for one of several are left", len(r.any))
		}
	})
}
