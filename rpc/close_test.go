package rpc_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport/fault"
)

// Nodes that close at the same time, as those of a program that ends, are all content.
func TestClose_AllAtOnce(t *testing.T) {
	for seed := range 30 {
		bubble(t, 3, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
			ctx := t.Context()
			for k, d := range c.nodes {
				c.serve(t, k, "echo", echo)
				for to := range k {
					_, err := d.Call(ctx, mcd.NodeID(to), "echo", make([]byte, 1000*seed))
					must(t, err)
				}
			}
			var all sync.WaitGroup
			for k, d := range c.nodes {
				all.Go(func() {
					time.Sleep(time.Duration(k*seed) * 10 * time.Microsecond)
					if err := d.Close(); err != nil {
						t.Errorf("seed %d, node %d: %v", seed, k, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// Close names a node that has not confirmed what was sent to it, and not one to which calls have
// failed before.
func TestClose_NamesTheSilent(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.faults[1].Cut(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.nodes[0].Call(ctx, 1, "echo", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		err := c.nodes[0].Close()
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || down.Node != 1 || down.Reason != memfifo.Silent {
			t.Errorf("%v, want node 1", err)
		}
	})
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.faults[1].Cut(true)
		if _, err := c.nodes[0].Call(t.Context(), 1, "echo", nil); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		must(t, c.nodes[0].Close())
	})
}

// While Close waits for a handler, this node neither calls nor serves any more.
func TestClose_NothingBeginsMeanwhile(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		c.serve(t, 0, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-hold; return nil, nil })
		c.serve(t, 1, "echo", echo)
		called, closed := make(chan error), make(chan error)
		go func() { _, err := c.nodes[1].Call(t.Context(), 0, "hold", nil); called <- err }()
		synctest.Wait()
		go func() { closed <- c.nodes[0].Close() }()
		synctest.Wait()
		if _, err := c.nodes[0].Call(t.Context(), 1, "echo", nil); !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("a call: %v", err)
		}
		if _, err := c.nodes[0].Serve("late", rpc.ServerConfig{Handler: echo}); !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("a server: %v", err)
		}
		if _, err := c.nodes[1].Call(t.Context(), 0, "hold", nil); !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("a call to it: %v", err)
		}
		if n := c.nodes[1].Counters().Served; n != 0 {
			t.Errorf("%d calls were served", n)
		}
		close(hold)
		must(t, <-called)
		must(t, <-closed)
	})
}

// A second Close waits for the first: the port is free then.
func TestClose_Twice(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		c.serve(t, 0, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-hold; return nil, nil })
		go func() { _, _ = c.nodes[1].Call(t.Context(), 0, "hold", nil) }()
		synctest.Wait()
		for range 2 {
			go func() { _ = c.nodes[0].Close() }()
		}
		time.AfterFunc(time.Second, func() { close(hold) })
		synctest.Wait()
		must(t, c.nodes[0].Close())
		d, err := rpc.Open(c.eps[0], rpc.Config{})
		must(t, err)
		must(t, d.Close())
	})
}
