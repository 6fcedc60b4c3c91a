package rpc_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport/fault"
)

// An idempotent call outlives the restart of its server, also where that dies without a word, closes
// while another handler runs, and serves again only some time after it is there. One to a node that
// was there all the time is told at once that nobody serves it.
func TestIdempotent_ServerRestarts(t *testing.T) {
	for _, how := range []string{"dies", "closes"} {
		bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
			idempotent := rpc.Options{Idempotent: true}
			if _, err := c.nodes[0].CallWith(t.Context(), 1, "echo", nil, idempotent); !errors.Is(err, rpc.ErrNoService) {
				t.Errorf("%v", err)
			}
			hold, closed := make(chan struct{}), make(chan error, 1)
			c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-hold; return nil, nil })
			c.serve(t, 1, "echo", echo)
			go func() { _, _ = c.nodes[0].Call(t.Context(), 1, "hold", nil) }()
			synctest.Wait()
			c.faults[1].Cut(how == "dies")
			go func() { closed <- c.nodes[1].Close() }()
			synctest.Wait()
			result := make(chan error)
			begun := time.Now()
			go func() { _, err := c.nodes[0].CallWith(t.Context(), 1, "echo", nil, idempotent); result <- err }()
			time.Sleep(time.Second)
			close(hold)
			<-closed
			c.faults[1].Cut(false)
			d, err := rpc.Open(c.eps[1], rpc.Config{})
			must(t, err)
			c.nodes[1] = d
			time.Sleep(3 * memfifo.DefaultPeerTimeout)
			c.serve(t, 1, "echo", echo)
			served := time.Now()
			if err := <-result; err != nil {
				t.Errorf("it %s: %v after %v", how, err, time.Since(begun))
			}
			if took := time.Since(served); took > 200*time.Millisecond {
				t.Errorf("it %s: answered after %v", how, took)
			}
		})
	}
}

// An idempotent call to a node that is down ends with its context, and with its domain.
func TestIdempotent_Ends(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		must(t, c.nodes[1].Close())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.nodes[0].CallWith(ctx, 1, "echo", nil, rpc.Options{Idempotent: true})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		result := make(chan error)
		go func() {
			_, err := c.nodes[0].CallWith(t.Context(), 1, "echo", nil, rpc.Options{Idempotent: true})
			result <- err
		}()
		time.Sleep(time.Minute)
		must2(t, c.nodes[0].Close())
		if err := <-result; err == nil {
			t.Error("answered by nobody")
		}
	})
}

// A call that is to be made again ends with ErrClosed where its own domain closes before.
func TestIdempotent_ItsDomainCloses(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		result := make(chan error)
		go func() {
			_, err := c.nodes[0].CallWith(t.Context(), 1, "wait", nil, rpc.Options{Idempotent: true})
			result <- err
		}()
		synctest.Wait()
		must(t, c.nodes[1].Close())
		c.reopen(t, 1)
		time.Sleep(time.Minute) // what is there is that nobody serves it
		must(t, c.nodes[0].Close())
		if err := <-result; !errors.Is(err, rpc.ErrClosed) || !errors.Is(err, rpc.ErrNoService) {
			t.Errorf("%v, want ErrClosed, and what stood in the way", err)
		}
	})
}

// A call to a node whose port is another program's fails, and does not wait for ever; those to
// others go on.
func TestCall_AnotherProgramsPort(t *testing.T) {
	bubble(t, 3, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		must(t, c.nodes[1].Close())
		d, err := memfifo.Open(c.eps[1], memfifo.Config{Port: rpc.DefaultPort})
		must(t, err)
		defer d.Close()
		c.serve(t, 2, "sleep", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			time.Sleep(time.Minute)
			return nil, nil
		})
		beside := make(chan error)
		go func() { _, err := c.nodes[0].Call(t.Context(), 2, "sleep", nil); beside <- err }()
		begun := time.Now()
		if _, err = c.nodes[0].Call(t.Context(), 1, "echo", nil); !errors.Is(err, rpc.ErrNoService) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took > 2*memfifo.DefaultPeerTimeout {
			t.Errorf("it took %v", took)
		}
		must(t, <-beside)
		must(t, c.nodes[0].Close()) // the call has told it
	})
}

// What a node's former program has refused fails no call to the domain that has the port now, also one
// that takes long; and a program that refuses calls is known at once, each time.
func TestCall_BehindAnotherProgramsPort(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		must(t, c.nodes[1].Close())
		other, err := memfifo.Open(c.eps[1], memfifo.Config{Port: rpc.DefaultPort})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := asked{ctx, cancel} // given up as it is sent
		if _, err := c.nodes[0].Call(cancelled, 1, "slow", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		for range 3 {
			begun := time.Now()
			_, err = c.nodes[0].Call(t.Context(), 1, "slow", nil)
			if took := time.Since(begun); !errors.Is(err, rpc.ErrNoService) || took > time.Second {
				t.Errorf("another program's: %v after %v", err, took)
			}
		}
		must(t, other.Close())
		time.Sleep(time.Hour)
		c.nodes[1], err = rpc.Open(c.eps[1], rpc.Config{})
		must(t, err)
		c.serve(t, 1, "slow", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			time.Sleep(5 * memfifo.DefaultPeerTimeout)
			return []byte("done"), nil
		})
		for range 2 {
			if resp, err := c.nodes[0].Call(t.Context(), 1, "slow", nil); string(resp) != "done" || err != nil {
				t.Errorf("an hour later: %q, %v", resp, err)
			}
		}
	})
}

// Calls that arrive together begin in the order in which they were made, where one runs at a time.
func TestCall_BeginsInOrder(t *testing.T) {
	for _, inline := range []bool{false, true} {
		bubble(t, 2, fault.Config{}, rpc.Config{Concurrency: 1}, func(t *testing.T, c *cluster) {
			var began, want []byte
			_, err := c.nodes[1].Serve("x", rpc.ServerConfig{Inline: inline,
				Handler: func(_ context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
					began = append(began, req...)
					return resp, nil
				}})
			must(t, err)
			c.faults[1].Cut(true) // so that they arrive together
			var calls sync.WaitGroup
			for i := range byte(20) {
				want = append(want, i)
				calls.Go(func() {
					_, err := c.nodes[0].Call(limit(t), 1, "x", []byte{i})
					must(t, err)
				})
				synctest.Wait()
			}
			c.faults[1].Cut(false)
			calls.Wait()
			if !slices.Equal(began, want) {
				t.Errorf("inline %v: %v", inline, began)
			}
		})
	}
}

// A call ends with its context also where a part of its request has gone, and no more follows.
func TestCall_EndsInTheMiddleOfItsRequest(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{PeerTimeout: time.Minute}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "echo", echo)
		c.faults[1].Cut(true)
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := c.nodes[0].Call(ctx, 1, "echo", make([]byte, 120_000))
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
					t.Errorf("%v after %v", err, took)
				}
			})
		}
		calls.Wait()
		c.faults[1].Cut(false)
		resp, err := c.nodes[0].Call(t.Context(), 1, "echo", []byte("whole"))
		if string(resp) != "whole" || err != nil {
			t.Errorf("%q, %v", resp, err)
		}
	})
}

// asked is a context that does something where a call asks for its deadline: that is when it waits
// for its response already, and was not sent yet.
type asked struct {
	context.Context
	do func()
}

func (c asked) Deadline() (at time.Time, ok bool) { c.do(); return at, false }

// A call that fails in the instant before it is sent, as its node restarts, is not sent to the node's
// next life: its handler would run there for nobody, and as long as it likes.
func TestCall_NodeRestartsBeforeItIsSent(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		ran := 0
		wait := func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			ran++
			<-ctx.Done()
			return nil, nil
		}
		c.serve(t, 1, "echo", echo)
		_, err := c.nodes[0].Call(t.Context(), 1, "echo", nil)
		must(t, err)
		restart := sync.OnceFunc(func() {
			must(t, c.nodes[1].Close())
			d, err := rpc.Open(c.eps[1], rpc.Config{})
			must(t, err)
			c.nodes[1] = d
			c.serve(t, 1, "wait", wait)
			c.serve(t, 1, "echo", echo)
			_, err = c.nodes[0].Call(t.Context(), 1, "echo", nil) // goes on with the node, as any call may meanwhile
			must(t, err)
		})
		_, err = c.nodes[0].Call(asked{t.Context(), restart}, 1, "wait", nil)
		if !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		if ran > 0 {
			t.Error("its handler runs")
		}
	})
}
