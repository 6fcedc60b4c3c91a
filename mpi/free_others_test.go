package mpi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// What is under way in other communicators does not keep one from being freed, and neither does a
// buffered send; who waits in a probe hears of it.
func TestComm_FreeWhileOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		ctx := t.Context()
		inBoth(t, func(c *Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			with := 1 - d.Rank()
			r := Irecv(c, make([]byte, 1), with, 9)
			if err := Bsend(d, make([]byte, 100_000), with, 5); err != nil {
				return err
			}
			probed := make(chan error)
			short, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			go func() { _, err := d.Probe(short, with, 7); probed <- err }()
			time.Sleep(time.Second)
			if err := d.Free(ctx); err != nil {
				return err
			}
			if err := <-probed; !errors.Is(err, ErrFreed) {
				t.Errorf("a probe: %v", err)
			}
			if _, err := d.group.Arrive(); err == nil {
				t.Error("its barriers go on")
			}
			err = Send(ctx, c, []byte{1}, with, 9)
			_, err2 := r.Wait(ctx)
			return errors.Join(err, err2)
		}, w, other)
		closeTwo(t, w, other)
	})
}

// Messages that nobody has received are dropped, also those of operations that not all took part in.
func TestComm_FreeDropsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		ctx := t.Context()
		inBoth(t, func(c *Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			if d.Rank() == 0 {
				err = errors.Join(Send(ctx, d, []byte{1}, 1, 0), Gather(ctx, d, []byte{1}, nil, 1))
			}
			time.Sleep(time.Second)
			for _, when := range []string{"before", "after"} {
				for _, context := range []uint32{d.context, d.context + 1} {
					q := matching.Pattern{Source: 0, Context: context, Tag: AnyTag}
					c.w.mu.Lock()
					m := c.w.engine.Probe(&q)
					c.w.mu.Unlock()
					if (m != nil) != (when == "before" && d.Rank() == 1) {
						t.Errorf("%s, at rank %d: context %d has a message: %v", when, d.Rank(), context, m != nil)
					}
				}
				if when == "before" {
					err = errors.Join(err, d.Free(ctx))
				}
			}
			return err
		}, w, other)
		closeTwo(t, w, other)
	})
}

// Who frees a communicator alone receives nothing in it any more: a send that says its message was
// received says so of no such message, whether it came before or comes later.
func TestComm_FreeAloneTellsSenders(t *testing.T) {
	for name, send := range map[string]func(ctx context.Context, d *Comm) error{
		"synchronous": func(ctx context.Context, d *Comm) error { return Ssend(ctx, d, []byte{1}, 1, 7) },
		"long":        func(ctx context.Context, d *Comm) error { return Send(ctx, d, make([]byte, 100_000), 1, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, other := openTwo(t, Config{})
				inBoth(t, func(c *Comm) error {
					ctx := t.Context()
					d, err := c.Dup(ctx)
					if err != nil {
						return err
					}
					if d.Rank() == 1 {
						time.Sleep(time.Second)
						short, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						if err := d.Free(short); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("freed alone: %v", err)
						}
						return c.Barrier(ctx)
					}
					for _, when := range []string{"before", "later"} {
						if err := send(ctx, d); !errors.Is(err, ErrFreed) {
							t.Errorf("%s: %v", when, err)
						}
					}
					return c.Barrier(ctx)
				}, w, other)
				closeTwo(t, w, other)
			})
		})
	}
}
