package rpc_test

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport/fault"
)

// As many handlers run as may, and as many requests wait behind them; one more is refused. Those that
// wait run in their order.
func TestHandlers_AreBounded(t *testing.T) {
	for _, b := range []struct {
		cfg            rpc.Config
		running, waits int
	}{{rpc.Config{}, 256, 1024}, {rpc.Config{Concurrency: 1, Backlog: 3}, 1, 3}, {rpc.Config{Concurrency: 2, Backlog: 1}, 2, 1}} {
		bubble(t, 2, fault.Config{}, b.cfg, func(t *testing.T, c *cluster) {
			hold := make(chan struct{})
			var running atomic.Int32
			var mu sync.Mutex // guards order
			var order []int
			c.serve(t, 1, "hold", func(_ context.Context, _ mcd.NodeID, req, _ []byte) ([]byte, error) {
				running.Add(1)
				mu.Lock()
				order = append(order, len(req))
				mu.Unlock()
				<-hold
				running.Add(-1)
				return nil, nil
			})
			var calls sync.WaitGroup
			for i := range b.running + b.waits {
				calls.Go(func() {
					if _, err := c.nodes[0].Call(t.Context(), 1, "hold", make([]byte, i)); err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				})
				synctest.Wait()
			}
			if n := running.Load(); int(n) != b.running {
				t.Errorf("%d handlers run, want %d", n, b.running)
			}
			if _, err := c.nodes[0].Call(t.Context(), 1, "hold", nil); !errors.Is(err, rpc.ErrOverloaded) {
				t.Errorf("one too many: %v", err)
			}
			for range b.waits { // one ends, and the next begins
				hold <- struct{}{}
				synctest.Wait()
			}
			for i, n := range order {
				if i != n {
					t.Errorf("call %d ran as the %d-th", n, i)
				}
			}
			close(hold)
			calls.Wait()
			if s := c.nodes[1].Counters(); int(s.Served) != b.running+b.waits || s.Refused != 1 || s.Frames.Delivered == 0 {
				t.Errorf("%+v", s)
			}
			if n := c.nodes[0].Counters().Calls; int(n) != b.running+b.waits+1 {
				t.Errorf("%d calls are counted", n)
			}
		})
	}
}

// A setting that makes no sense is refused, and says which.
func TestOpen_Config(t *testing.T) {
	bubble(t, 1, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		for says, cfg := range map[string]rpc.Config{
			"rpc: Config.Concurrency -1": {Port: 9, Concurrency: -1},
			"Backlog -1":                 {Port: 9, Backlog: -1},
			"PeerTimeout -1ns":           {Port: 9, PeerTimeout: -1},
			"PeerTimeout 5ns":            {Port: 9, PeerTimeout: 5},
		} {
			if d, err := rpc.Open(c.eps[0], cfg); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%+v: %v, %v; want %q", cfg, d, err, says)
			}
		}
		if d, err := rpc.Open(c.eps[0], rpc.Config{}); !errors.Is(err, mcd.ErrPortBusy) {
			t.Errorf("a second domain on a port: %v, %v", d, err)
		}
		longest := strings.Repeat("s", rpc.MaxService)
		c.serve(t, 0, longest, echo)
		if resp, err := c.nodes[0].Call(t.Context(), 0, longest, []byte("x")); string(resp) != "x" || err != nil {
			t.Errorf("a service of the longest name: %q, %v", resp, err)
		}
	})
}

// An endpoint that is closed before its domain ends the calls that wait, and the workers.
func TestWaits_EndWithTheEndpoint(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		c.serve(t, 0, "echo", echo)
		c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-hold; return nil, nil })
		_, err := c.nodes[1].Call(t.Context(), 0, "echo", nil) // leaves a worker that waits
		must(t, err)
		result := make(chan error)
		go func() { _, err := c.nodes[0].Call(t.Context(), 1, "hold", nil); result <- err }()
		synctest.Wait()
		must(t, c.eps[0].Close())
		if err := <-result; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v", err)
		}
		close(hold)
		if err := c.nodes[0].Close(); err != nil && !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// A node that dies while it serves is missed each time, also in a later life, and so is a caller.
func TestCall_ServerDiesAgain(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		gone := make(chan error, 1)
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			gone <- ctx.Err()
			return nil, nil
		})
		c.serve(t, 1, "echo", echo)
		for range 3 {
			_, err := c.nodes[0].Call(t.Context(), 1, "echo", nil)
			must(t, err)
			result := make(chan error)
			begun := time.Now()
			go func() { _, err := c.nodes[0].Call(t.Context(), 1, "wait", nil); result <- err }()
			time.Sleep(time.Minute) // it waits for the response alone
			c.faults[1].Cut(true)
			if err := <-result; !errors.Is(err, memfifo.ErrPeerDown) {
				t.Errorf("%v", err)
			}
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("the handler's context: %v", err)
			}
			if took := time.Since(begun) - time.Minute; took > 3*memfifo.DefaultPeerTimeout {
				t.Errorf("it took %v", took)
			}
			c.faults[1].Cut(false)
			synctest.Wait()
		}
	})
}

// A node to which a call was given up is not probed for ever, and neither is the caller.
func TestCall_GivenUpIsNotProbed(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.nodes[0].Call(ctx, 1, "wait", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			cancel()
		}
		time.Sleep(3 * memfifo.DefaultPeerTimeout)
		for node, ep := range c.eps {
			before := ep.Counters().TxMessages
			time.Sleep(time.Hour)
			if n := ep.Counters().TxMessages - before; n > 0 {
				t.Errorf("node %d: %d frames in an idle hour", node, n)
			}
		}
	})
}

// slowClock is a context whose deadline has passed before it says so.
type slowClock struct {
	context.Context
	at time.Time
}

func (c slowClock) Deadline() (time.Time, bool) { return c.at, true }

// A server that finds a call's deadline passed, before its handler began or in it, says that, in time
// for a caller whose clock is behind.
func TestCall_ExpiresAtTheServer(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{Concurrency: 1}, func(t *testing.T, c *cluster) {
		ran := make(chan bool, 2)
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			ran <- true
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx := slowClock{t.Context(), time.Now().Add(time.Second)}
		ends := make(chan error)
		for range 2 { // the second one waits for the first
			go func() { _, err := c.nodes[0].Call(ctx, 1, "wait", nil); ends <- err }()
			synctest.Wait()
		}
		for range 2 {
			err := <-ends
			if _, remote := errors.AsType[*rpc.RemoteError](err); remote || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want that the deadline has passed", err)
			}
		}
		if n := len(ran); n != 1 {
			t.Errorf("the handler ran %d times", n)
		}
	})
}

// With the longest backlog, for those who want no bound, requests are served.
func TestBacklog_Longest(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{Backlog: math.MaxInt, Concurrency: math.MaxInt}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "echo", echo)
		if resp, err := c.nodes[0].Call(limit(t), 1, "echo", []byte("x")); string(resp) != "x" || err != nil {
			t.Errorf("%q, %v", resp, err)
		}
	})
}
