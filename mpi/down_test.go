package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// A process that leaves is named by all that waits for it, also by what waits for any, until its
// end is acknowledged; then that waits for the others, until nobody is left.
func TestDown(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, buf := t.Context(), make([]byte, 100_000)
		var down *mpi.ProcessError
		named := func(what string, err error, rank int) {
			t.Helper()
			if !errors.As(err, &down) || down.Rank != rank || !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("%s: %v, want that rank %d has failed", what, err, rank)
			}
		}
		switch c.Rank() {
		case 0:
			_, err := mpi.Recv(ctx, c, buf, 2, 0)
			must(t, err)
			any := mpi.Irecv(c, buf, mpi.AnySource, 1)
			long := mpi.Isend(c, buf, 2, 0)
			_, err = mpi.Recv(ctx, c, make([]byte, 1), 2, 0)
			named("a receive", err, 2)
			_, err = long.Wait(ctx)
			named("a send that waits", err, 2)
			named("a send", mpi.Send(ctx, c, buf, 2, 0), 2)
			_, err = c.Probe(ctx, 2, mpi.AnyTag)
			named("a probe", err, 2)
			must(t, mpi.Send(ctx, c, buf[:1], 1, 0))
			_, err = any.Wait(ctx)
			named("a receive from any, before", err, 2)
			_, err = c.Probe(ctx, mpi.AnySource, 1)
			named("a probe of any, before", err, 2)
			if acknowledged := c.AckFailed(); !slices.Equal(acknowledged, []int{2}) {
				t.Errorf("%v are acknowledged", acknowledged)
			}
			s, err := mpi.Recv(ctx, c, buf, mpi.AnySource, 1)
			must(t, err)
			if s.Source != 1 {
				t.Errorf("%+v", s)
			}
			_, err = mpi.Recv(ctx, c, buf, mpi.AnySource, mpi.AnyTag)
			named("a receive from any", err, 1)
			_, err = mpi.Recv(ctx, c, buf, mpi.AnySource, mpi.AnyTag)
			named("a receive from any, later", err, 1)
			_, err = c.Probe(ctx, mpi.AnySource, mpi.AnyTag)
			named("a probe of any", err, 1)
		case 1:
			_, err := mpi.Recv(ctx, c, buf, 0, 0)
			must(t, err)
			must(t, mpi.Send(ctx, c, buf[:1], 0, 1))
			time.Sleep(time.Second)
			must(t, c.World().Close())
		case 2:
			must(t, mpi.Send(ctx, c, buf[:1], 0, 0))
			time.Sleep(time.Second)
			must(t, c.World().Close())
		}
	})
}

// A process that is left alone still receives from itself.
func TestDown_FromItself(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() == 1 {
			must(t, c.World().Close())
			return
		}
		buf := make([]byte, 1)
		own := mpi.Irecv(c, buf, 0, 0)
		if _, err := mpi.Recv(t.Context(), c, buf, mpi.AnySource, 1); !errors.Is(err, mpi.ErrProcessFailed) {
			t.Errorf("%v", err)
		}
		if _, done, err := own.Test(); done {
			t.Errorf("its receive from itself has ended: %v", err)
		}
		must(t, mpi.Send(t.Context(), c, []byte{7}, 0, 0))
		if _, err := own.Wait(t.Context()); err != nil || buf[0] != 7 {
			t.Errorf("%v, %v", buf, err)
		}
	})
}

// A collective operation that others have left fails, whichever part in it this process has.
func TestDown_InCollectives(t *testing.T) {
	for size := 2; size <= 3; size++ {
		for alone := range size {
			for _, cfg := range []mpi.Config{{}, allByMulticast} {
				bubble(t, size, fault.Config{}, cfg, func(t *testing.T, c *mpi.Comm) {
					if c.Rank() != alone {
						must(t, c.World().Close())
						return
					}
					fails(t, c)
				})
			}
		}
	}
}

// fails checks that each collective operation names a process that is down, where all others are.
func fails(t *testing.T, c *mpi.Comm) {
	t.Helper()
	size := c.Size()
	ctx, one, all, list := t.Context(), []int{1}, make([]int, size), make([][]int, size)
	if _, err := mpi.Recv(ctx, c, one, mpi.AnySource, 0); !errors.Is(err, mpi.ErrProcessFailed) {
		t.Errorf("%v", err) // all others are known to be down
	}
	for k := range list {
		list[k] = make([]int, 1)
	}
	counts := slices.Repeat([]int{1}, size)
	errs := map[string]error{
		"allgather":      mpi.Allgather(ctx, c, one, all),
		"allgatherv":     mpi.Allgatherv(ctx, c, one, list),
		"alltoall":       mpi.Alltoall(ctx, c, all, slices.Clone(all)),
		"alltoallv":      mpi.Alltoallv(ctx, c, list, list),
		"allreduce":      mpi.Allreduce(ctx, c, one, []int{0}, mpi.Sum),
		"scan":           mpi.Scan(ctx, c, one, []int{0}, mpi.Sum),
		"exscan":         mpi.Exscan(ctx, c, one, []int{0}, mpi.Sum),
		"reduce-scatter": mpi.ReduceScatter(ctx, c, all, one, counts, mpi.Sum),
		"split":          second(c.Split(ctx, 0, 0)),
	}
	for root := range size {
		for what, err := range map[string]error{
			"bcast":    mpi.Bcast(ctx, c, one, root),
			"gather":   mpi.Gather(ctx, c, one, all, root),
			"gatherv":  mpi.Gatherv(ctx, c, one, list, root),
			"scatter":  mpi.Scatter(ctx, c, all, one, root),
			"scatterv": mpi.Scatterv(ctx, c, list, one, root),
			"reduce":   mpi.Reduce(ctx, c, one, []int{0}, mpi.Sum, root),
		} {
			errs[fmt.Sprintf("%s, root %d", what, root)] = err
		}
	}
	for what, err := range errs {
		if !errors.Is(err, mpi.ErrProcessFailed) {
			t.Errorf("rank %d of %d, %s: %v", c.Rank(), size, what, err)
		}
	}
}

// A world that goes, and waits before that for a process which does not answer any more, leaves its
// memory to the others meanwhile: who reads a message there, or writes one, does not hear of a
// sender that has taken it back, or of a window that is gone.
func TestClose_LeavesItsMemoryToOthers(t *testing.T) {
	for _, written := range []bool{false, true} {
		mortal(t, 3, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
			ctx, long := t.Context(), make([]byte, 100_000)
			must(t, c.Barrier(ctx))
			switch c.Rank() {
			case 0:
				time.Sleep(2 * time.Second)
				if written {
					must(t, mpi.Send(ctx, c, long, 1, 0))
				} else {
					must(t, second(mpi.Recv(ctx, c, long, 1, 0)))
				}
				if _, err := mpi.Recv(ctx, c, long, 1, 1); !slices.Equal(named(err), []int{1}) {
					t.Errorf("%v", err)
				}
				must(t, c.World().Close())
			case 1:
				var r *mpi.Request
				if written {
					r = mpi.Irecv(c, long, 0, 0)
				} else {
					r = mpi.Isend(c, long, 0, 0)
				}
				time.Sleep(1900 * time.Millisecond)
				must(t, mpi.Send(ctx, c, []byte{1}, 2, 0))
				go func() { _ = c.World().Close() }()
				if _, err := r.Wait(ctx); !errors.Is(err, mpi.ErrClosed) {
					t.Errorf("%v", err)
				}
			case 2:
				all.die(2)
			}
		})
	}
}

// A process that leaves is named as one that has failed, and not as one that has freed the
// communicator, also by those that it never had a message with.
func TestDown_InABarrierWithoutMessages(t *testing.T) {
	bubble(t, 10, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		d, err := c.Dup(t.Context())
		must(t, err)
		must(t, d.Barrier(t.Context()))
		if c.Rank() == 6 {
			time.Sleep(time.Second)
			must(t, c.World().Close())
			return
		}
		if err := d.Barrier(t.Context()); !slices.Equal(named(err), []int{6}) || errors.Is(err, mpi.ErrFreed) {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
		time.Sleep(time.Minute) // the others hear of it by the barrier, too
	})
}
