package mpi

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mpi/internal/wire"
	"github.com/rawlane/rawlane/transport/fault"
)

// Where an Op does not return in one process the others' part ends with an error that names it, or
// one that had heard so, and the operations that follow are of all.
func TestLeave_Collectives(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *Comm, op Op[int]) error{
		"reduce": func(ctx context.Context, c *Comm, op Op[int]) error {
			return Reduce(ctx, c, []int{1}, []int{0}, op, 4)
		},
		"scan": func(ctx context.Context, c *Comm, op Op[int]) error { return Scan(ctx, c, []int{1}, []int{0}, op) },
		"exscan": func(ctx context.Context, c *Comm, op Op[int]) error {
			return Exscan(ctx, c, []int{1}, []int{0}, op)
		},
		"long": func(ctx context.Context, c *Comm, op Op[int]) error { // by messages that are offered
			return Allreduce(ctx, c, make([]int, 20_000), make([]int, 20_000), op)
		},
		"begun": func(ctx context.Context, c *Comm, op Op[int]) error {
			_, err := Iallreduce(c, []int{1}, []int{0}, op).Wait(ctx)
			return err
		},
	} {
		for leaves, leave := range noreturn.Ways {
			if name == "begun" && leaves == "panic" {
				continue // it ends the process
			}
			const leaver = 2 // combines in all of them
			t.Run(name+" "+leaves, func(t *testing.T) {
				freeing(t, 5, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					var named atomic.Int32
					inBoth(t, func(c *Comm) error {
						c = d[c.Rank()]
						op, over := Op[int](Sum[int]), make(chan error)
						if c.Rank() == leaver {
							op = func(_, _ []int) { leave() }
						}
						go func() {
							defer close(over)
							defer func() { _ = recover() }()
							over <- call(ctx, c, op)
						}()
						switch err := <-over; {
						case c.Rank() == leaver || err == nil: // what this one needs has come before
						case !errors.Is(err, ErrWithdrawn) || !strings.Contains(err.Error(), ": rank "):
							t.Errorf("rank %d: %v", c.Rank(), err)
						default:
							named.Add(1)
						}
						sum := []int{0}
						if err := Reduce(ctx, c, []int{1}, sum, Sum, 0); err != nil || c.Rank() == 0 && sum[0] != 5 {
							t.Errorf("the next one, at rank %d: %v, %v", c.Rank(), sum, err)
						}
						return c.Barrier(ctx)
					}, worlds...)
					if named.Load() == 0 {
						t.Error("nobody has waited for the one that has left")
					}
					for k, c := range d {
						c.w.mu.Lock()
						if len(c.leavers) > maxLeavers || worlds[k].stats.Malformed > 0 {
							t.Errorf("rank %d: %d leavers, %d records are malformed", k, len(c.leavers), worlds[k].stats.Malformed)
						}
						c.w.mu.Unlock()
					}
				})
			})
		}
	}
}

// What a process says of operations that are over, or to come, is bounded, and those that it has
// not left go on.
func TestLeave_Many(t *testing.T) {
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		worlds[0].mu.Lock()
		for k := range 3 * maxLeavers {
			d[0].tellAll(&wire.Comm{Left: true, Operation: uint32(1000 + k)})
		}
		worlds[0].run()
		inBoth(t, func(c *Comm) error {
			c = d[c.Rank()]
			return errors.Join(c.Barrier(t.Context()), Reduce(t.Context(), c, []int{1}, []int{1}, Sum, 0))
		}, worlds...)
		keeps := func(want int) {
			worlds[1].mu.Lock()
			defer worlds[1].mu.Unlock()
			if n := len(d[1].leavers); n != want {
				t.Errorf("%d are kept, want %d", n, want)
			}
		}
		keeps(maxLeavers)
		d[1].operations.Store(1000 + 3*maxLeavers - 2)
		if err := Scatter(t.Context(), d[1], nil, []int{1}, 0); !errors.Is(err, ErrWithdrawn) {
			t.Errorf("one that the other process has left: %v", err)
		}
		keeps(maxLeavers - 1)
	})
}
