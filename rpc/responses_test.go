package rpc_test

import (
	"context"
	"errors"
	"fmt"
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

// A node that takes no responses holds up nobody else's calls, and what waits for it is bounded.
func TestResponses_OfANodeThatTakesNone(t *testing.T) {
	for _, concurrency := range []int{1, 4} {
		t.Run(fmt.Sprintf("concurrency %d", concurrency), func(t *testing.T) { takesNone(t, concurrency) })
	}
}

func takesNone(t *testing.T, concurrency int) {
	const backlog, more = 200, 50
	response := make([]byte, 60<<10) // a window has room for a few
	cfg := rpc.Config{Concurrency: concurrency, Backlog: backlog, PeerTimeout: time.Minute}
	bubble(t, 3, fault.Config{}, cfg, func(t *testing.T, c *cluster) {
		hold, server := make(chan struct{}), c.nodes[1]
		c.serve(t, 1, "echo", echo)
		c.serve(t, 1, "hold", func(_ context.Context, _ mcd.NodeID, _, resp []byte) ([]byte, error) {
			<-hold
			return append(resp, response...), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		call := func() {
			calls.Go(func() {
				if _, err := c.nodes[0].Call(ctx, 1, "hold", nil); err == nil {
					t.Error("a response has come through")
				}
			})
			synctest.Wait()
		}
		for range concurrency + backlog {
			call()
		}
		must(t, c.faults[0].SetConfig(fault.Config{Loss: 1})) // it hears nothing, and is heard
		close(hold)
		synctest.Wait()
		soon, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if resp, err := c.nodes[2].Call(soon, 1, "echo", []byte("x")); string(resp) != "x" || err != nil {
			t.Errorf("another node's call: %q, %v", resp, err)
		}
		before := server.Counters()
		for range more {
			call()
		}
		after := server.Counters()
		if served, refused := after.Served-before.Served, after.Refused-before.Refused; served+refused != more || refused == 0 {
			t.Errorf("%d more were served and %d refused, while most of %d responses wait", served, refused, concurrency+backlog)
		}
		cancel()
		calls.Wait()
		must(t, c.faults[0].SetConfig(fault.Config{}))
		if _, err := c.nodes[0].Call(t.Context(), 1, "echo", nil); !errors.Is(err, rpc.ErrOverloaded) {
			t.Errorf("heard again, with %d responses under way: %v", backlog, err)
		}
		if _, err := c.nodes[0].Call(t.Context(), 1, "echo", nil); err != nil {
			t.Errorf("a refusal behind all responses, and then: %v", err)
		}
	})
}

// No more handlers run at once than may, though a worker that sends several responses waits for room
// for each, and leaves its place to another one.
func TestResponses_TheirWaitsKeepTheBound(t *testing.T) {
	cfg := rpc.Config{Concurrency: 1, PeerTimeout: time.Minute}
	bubble(t, 3, fault.Config{}, cfg, func(t *testing.T, c *cluster) {
		begin, hold := make(chan struct{}), make(chan struct{})
		c.serve(t, 1, "long", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			<-begin
			return make([]byte, 120_000), nil
		})
		var running, most atomic.Int32
		c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-hold
			return nil, nil
		})
		var calls sync.WaitGroup
		call := func(from int, service string) {
			calls.Go(func() {
				if _, err := c.nodes[from].Call(t.Context(), 1, service, nil); err != nil {
					t.Errorf("%s: %v", service, err)
				}
			})
		}
		for range 10 {
			call(0, "long")
		}
		synctest.Wait()
		must(t, c.faults[0].SetConfig(fault.Config{Loss: 1})) // it hears nothing
		close(begin)
		synctest.Wait() // most of the responses wait
		for range 5 {
			call(2, "hold")
		}
		synctest.Wait()
		must(t, c.faults[0].SetConfig(fault.Config{}))
		time.Sleep(10 * time.Second) // all of the responses have gone
		if n := running.Load(); n != 1 {
			t.Errorf("%d handlers run, want 1", n)
		}
		close(hold)
		calls.Wait()
		if n := most.Load(); n != 1 {
			t.Errorf("%d handlers ran at once, want 1", n)
		}
	})
}

// A node that was down, and to which a response was lost, is answered when it calls again.
func TestResponses_AfterTheCallerWasDown(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		c.serve(t, 1, "echo", echo)
		c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-hold; return nil, nil })
		held := make(chan error, 1)
		go func() { _, err := c.nodes[0].Call(t.Context(), 1, "hold", nil); held <- err }()
		synctest.Wait()
		c.faults[0].Cut(true)
		close(hold)
		if err := <-held; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		c.faults[0].Cut(false)
		if resp, err := c.nodes[0].Call(limit(t), 1, "echo", []byte("x")); string(resp) != "x" || err != nil {
			t.Errorf("%q, %v", resp, err)
		}
	})
}

// Responses of handlers that take no place, and refusals, wait for none: where all places are taken,
// calls of this node itself and long responses of inline handlers go at once.
func TestResponses_NeedNoPlace(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{Concurrency: 1}, func(t *testing.T, c *cluster) {
		inline := func(_ context.Context, _ mcd.NodeID, _, resp []byte) ([]byte, error) {
			return append(resp, make([]byte, 100_000)...), nil
		}
		_, err := c.nodes[1].Serve("inline", rpc.ServerConfig{Inline: true, Handler: inline})
		must(t, err)
		release := make(chan bool)
		c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-release; return nil, nil })
		held := make(chan error)
		go func() { _, err := c.nodes[0].Call(t.Context(), 1, "hold", nil); held <- err }()
		synctest.Wait()
		for from, d := range c.nodes {
			if resp, err := d.Call(limit(t), 1, "inline", nil); len(resp) != 100_000 || err != nil {
				t.Errorf("node %d: inline: %d bytes, %v", from, len(resp), err)
			}
			if _, err := d.Call(limit(t), 1, "nobody's", nil); !errors.Is(err, rpc.ErrNoService) {
				t.Errorf("node %d: a service that nobody serves: %v", from, err)
			}
		}
		close(release)
		must(t, <-held)
	})
}
