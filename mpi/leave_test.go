package mpi

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// What a process says of operations that are over is not kept, and of those to come it is bounded.
func TestLeave_Many(t *testing.T) {
	const first = 1000
	freeing(t, 2, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		says := func(operations ...int) {
			worlds[0].mu.Lock()
			for _, k := range operations {
				d[0].tellAll(&wire.Comm{Left: true, Operation: uint32(k)})
			}
			worlds[0].run()
			synctest.Wait()
		}
		keepsAt := func(rank, want int) {
			t.Helper()
			synctest.Wait()
			worlds[rank].mu.Lock()
			defer worlds[rank].mu.Unlock()
			if n := len(d[rank].leavers); n != want || d[rank].anyLeft.Load() != (n > 0) {
				t.Errorf("%d are kept at %d, want %d", n, rank, want)
			}
		}
		keeps := func(want int) { t.Helper(); keepsAt(1, want) }
		ends := func(operation int, want string) {
			t.Helper()
			d[1].operations.Store(uint32(operation) - 1)
			err := Scatter(t.Context(), d[1], nil, []int{1}, 0)
			if !errors.Is(err, ErrWithdrawn) || !strings.Contains(err.Error(), want) {
				t.Errorf("one that the other process has left: %v, want %s", err, want)
			}
		}
		d[1].operations.Store(first / 2)
		says(1, 2, first/2-1, first/2) // what is over
		keeps(0)
		for k := range 3 * maxLeavers {
			says(first+2*k, first+2*k) // what is known is not kept twice
		}
		keeps(maxLeavers)
		says(first-2, first+2)
		keeps(maxLeavers)
		last := first + 2*(3*maxLeavers-1)
		ends(first, "rank 0 has left the operation: ")
		keeps(maxLeavers - 1)
		keepsAt(0, 1) // who hears it tells the others in turn
		ends(last, "rank 0 has left the operation, or one near it: ")
		keeps(0)
		keepsAt(0, 2)
		for k := range 3 * maxLeavers {
			says(last + 2 + k)
		}
		keeps(1)
		ends(last+2+maxLeavers, "rank 0 has left the operation: ")
		keeps(1)
		ends(last+1+3*maxLeavers, "rank 0 has left the operation: ")
		keeps(0)
	})
}

// A process that is late in many operations, of which another one has left half, waits in none: more
// than it keeps, and each before one of others that waits for nobody.
func TestLeave_LateInMany(t *testing.T) {
	const late, operations = 2, 3 * maxLeavers
	freeing(t, 4, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		inBoth(t, func(c *Comm) error {
			c = d[c.Rank()]
			if c.Rank() == late {
				time.Sleep(time.Second)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for k := range operations {
				err := leftReduction(ctx, c)
				if c.Rank() == late && !errors.Is(err, ErrWithdrawn) {
					t.Errorf("operation %d: %v", k, err)
				}
				err = Gather(ctx, c, []int{k}, make([]int, c.Size()), late)
				if err != nil && !errors.Is(err, ErrWithdrawn) {
					t.Errorf("rank %d, Gather %d: %v", c.Rank(), k, err)
				}
			}
			return c.Barrier(ctx)
		}, worlds...)
	})
}

// leftReduction is an Allreduce that rank 0 leaves.
func leftReduction(ctx context.Context, c *Comm) error {
	defer func() { _ = recover() }()
	data := make([]int, 1+maxMulticast/8)
	return Allreduce(ctx, c, data, make([]int, len(data)), func(into, with []int) {
		if c.Rank() == 0 {
			panic("an Op")
		}
		Sum(into, with)
	})
}
