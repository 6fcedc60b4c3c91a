package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/rpc/internal/wire"
	"github.com/rawlane/rawlane/transport/fault"
)

// The port is that of docs/wire-format.md.
func TestPort(t *testing.T) {
	if rpc.DefaultPort != 249 {
		t.Errorf("port %d", rpc.DefaultPort)
	}
}

// An idempotent call is made again where its node was down, and for no other reason: until its
// context ends.
func TestCall_WhatIsMadeAgain(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		again := rpc.Options{Idempotent: true}
		if _, err := c.nodes[0].CallWith(t.Context(), 1, "nobody", nil, again); !errors.Is(err, rpc.ErrNoService) {
			t.Errorf("%v", err)
		}
		if n := c.nodes[0].Counters().Calls; n != 1 {
			t.Errorf("%d calls were made", n)
		}
		c.faults[1].Cut(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*memfifo.DefaultPeerTimeout/2)
		defer cancel()
		begun := time.Now()
		_, err := c.nodes[0].CallWith(ctx, 1, "nobody", nil, again)
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != 3*memfifo.DefaultPeerTimeout/2 {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A deadline that has passed, by the caller's clock, and one beyond all time are deadlines all the same.
func TestCall_OddDeadlines(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "deadline", func(ctx context.Context, _ mcd.NodeID, _, resp []byte) ([]byte, error) {
			at, set := ctx.Deadline()
			if left := time.Until(at); !set || left < 100*365*24*time.Hour {
				t.Errorf("%v is left, %v", left, set)
			}
			return resp, nil
		})
		far := slowClock{t.Context(), time.Now().Add(math.MaxInt64)}
		if _, err := c.nodes[0].Call(far, 1, "deadline", nil); err != nil {
			t.Error(err)
		}
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for _, ago := range []time.Duration{0, time.Hour} {
			past := slowClock{t.Context(), time.Now().Add(-ago)}
			if _, err := c.nodes[0].Call(past, 1, "wait", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
	})
}

// A response counts if it comes from the node that was called, and once.
func TestCall_ResponsesOfOthersDoNotCount(t *testing.T) {
	bubble(t, 3, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		response := func(rec []byte, text string) []byte {
			return append(append([]byte{0x12, 0, 0, 0}, rec[4:12]...), text...)
		}
		var other *memfifo.Domain
		for node := 2; node >= 1; node-- {
			must(t, c.nodes[node].Close())
			d, err := memfifo.Open(c.eps[node], memfifo.Config{Port: rpc.DefaultPort})
			must(t, err)
			defer d.Close()
			_, err = d.Handle(1, memfifo.HandlerConfig{Public: true, Record: func(from memfifo.Sender, rec []byte) {
				rec = bytes.Clone(rec)
				go func() {
					must(t, other.Remote(memfifo.PublicKey(0, 1)).Push(context.Background(), response(rec, "forged")))
					must(t, other.Flush(context.Background()))
					for range 2 {
						must(t, d.Remote(memfifo.PublicKey(0, 1)).Push(context.Background(), response(rec, "true")))
					}
				}()
			}})
			must(t, err)
			if node == 2 {
				other = d
			}
		}
		resp, err := c.nodes[0].Call(t.Context(), 1, "x", nil)
		if string(resp) != "true" || err != nil {
			t.Errorf("%q, %v", resp, err)
		}
		synctest.Wait()
		if n := c.nodes[0].Counters().Unexpected; n != 2 {
			t.Errorf("%d responses were unexpected, want 2", n)
		}
	})
}

// Close of a server ends that one alone: another one of its name serves on.
func TestServer_CloseAgain(t *testing.T) {
	bubble(t, 1, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		first := c.serve(t, 0, "x", echo)
		must(t, first.Close())
		c.serve(t, 0, "x", echo)
		must(t, first.Close())
		if _, err := c.nodes[0].Call(t.Context(), 0, "x", nil); err != nil {
			t.Error(err)
		}
	})
}

// An error's text is cut where it would not fit a response.
func TestHandler_LongErrors(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		for _, size := range []int{rpc.MaxMessage - 1, rpc.MaxMessage, rpc.MaxMessage + 1, 2 * rpc.MaxMessage} {
			s := c.serve(t, 1, "x", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
				return nil, errors.New(strings.Repeat("e", size))
			})
			_, err := c.nodes[0].Call(t.Context(), 1, "x", nil)
			e, ok := errors.AsType[*rpc.RemoteError](err)
			if !ok || len(e.Message) != min(size, rpc.MaxMessage) {
				t.Errorf("%d bytes: %.100v", size, err)
			}
			must(t, s.Close())
		}
	})
}

// The context of a handler ends with it.
func TestHandler_ContextEndsWithIt(t *testing.T) {
	bubble(t, 1, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		kept := make(chan context.Context, 1)
		c.serve(t, 0, "x", func(ctx context.Context, _ mcd.NodeID, _, resp []byte) ([]byte, error) {
			kept <- ctx
			return resp, nil
		})
		_, err := c.nodes[0].Call(t.Context(), 0, "x", nil)
		must(t, err)
		synctest.Wait()
		if err := (<-kept).Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// A node that is found dead while Close waits for a handler is named by it.
func TestClose_NamesWhoDiesMeanwhile(t *testing.T) {
	bubble(t, 3, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		c.serve(t, 0, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-hold; return nil, nil })
		go func() { _, _ = c.nodes[1].Call(t.Context(), 0, "hold", nil) }()
		synctest.Wait()
		c.faults[2].Cut(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := c.nodes[0].Call(ctx, 2, "x", nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		closed := make(chan error)
		go func() { closed <- c.nodes[0].Close() }()
		time.Sleep(2 * memfifo.DefaultPeerTimeout)
		close(hold)
		err = <-closed
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || down.Node != 2 {
			t.Errorf("%v, want node 2", err)
		}
		must(t, c.nodes[0].Close()) // it says so once
	})
}

// codec fails where it is told to.
type codec struct{ marshal, unmarshal error }

func (c codec) Marshal(v any) ([]byte, error)   { return []byte(v.(string)), c.marshal }
func (c codec) Unmarshal(b []byte, v any) error { *v.(*string) = string(b); return c.unmarshal }

// What a codec or a handler of values says comes to the caller, with the call's name.
func TestInvoke_Errors(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		fails := errors.New("it fails")
		for _, x := range []struct {
			name           string
			client, server codec
			handler        error
			remote         bool
		}{
			{"none", codec{}, codec{}, nil, false},
			{"the request is not made", codec{marshal: fails}, codec{}, nil, false},
			{"the request is not read", codec{}, codec{unmarshal: fails}, nil, true},
			{"the handler fails", codec{}, codec{}, fails, true},
			{"the response is not made", codec{}, codec{marshal: fails}, nil, true},
			{"the response is not read", codec{unmarshal: fails}, codec{}, nil, false},
		} {
			s := c.serve(t, 1, "x", rpc.Typed(x.server, func(_ context.Context, _ mcd.NodeID, req string) (string, error) {
				return req + "!", x.handler
			}))
			resp, err := rpc.Invoke[string](t.Context(), c.nodes[0], x.client, 1, "x", "hello", rpc.Options{})
			_, remote := errors.AsType[*rpc.RemoteError](err)
			switch {
			case x.name == "none":
				if resp != "hello!" || err != nil {
					t.Errorf("%q, %v", resp, err)
				}
			case err == nil, remote != x.remote, !remote && !errors.Is(err, fails),
				!strings.Contains(err.Error(), "node 1, service x: it fails"):
				t.Errorf("%s: %v", x.name, err)
			}
			must(t, s.Close())
		}
	})
}

// What is in the memory for the response is not a part of the value.
func TestInvoke_MemoryThatIsNotEmpty(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "double", rpc.Typed(rpc.JSON, func(_ context.Context, _ mcd.NodeID, n int) (int, error) { return 2 * n, nil }))
		for _, o := range []rpc.Options{{Response: make([]byte, 100)}, {Response: make([]byte, 0, 100)}, {}} {
			n, err := rpc.Invoke[int](t.Context(), c.nodes[0], rpc.JSON, 1, "double", 21, o)
			if n != 42 || err != nil {
				t.Errorf("with %d bytes: %d, %v", len(o.Response), n, err)
			}
		}
	})
}

// Close ends the calls that wait, at once: it does not wait for handlers before.
func TestClose_EndsCallsAtOnce(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		handler := func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-hold; return nil, nil }
		c.serve(t, 0, "hold", handler)
		c.serve(t, 1, "hold", handler)
		go func() { _, _ = c.nodes[1].Call(t.Context(), 0, "hold", nil) }()
		called, closed := make(chan error), make(chan error)
		go func() { _, err := c.nodes[0].Call(t.Context(), 1, "hold", nil); called <- err }()
		synctest.Wait()
		go func() { closed <- c.nodes[0].Close() }()
		select {
		case err := <-called:
			if !errors.Is(err, rpc.ErrClosed) {
				t.Errorf("%v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the call waits still")
		}
		close(hold)
		must(t, <-closed)
	})
}

// The very first call is one whose node is missed when it dies, however long the handler takes; and
// so is its caller.
func TestCall_TheFirstIsProbed(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		gone := make(chan error, 1)
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			gone <- ctx.Err()
			return nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result := make(chan error)
		go func() { _, err := c.nodes[0].Call(ctx, 1, "wait", nil); result <- err }()
		time.Sleep(time.Minute)
		c.faults[1].Cut(true)
		begun := time.Now()
		if err := <-result; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler's context: %v", err)
		}
		if took := time.Since(begun); took > 3*memfifo.DefaultPeerTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// An inline handler that appends to its request, which is a view of the frame, writes over no other
// one: each caller has its response.
func TestInline_AppendsToItsRequest(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		must(t, c.nodes[0].Close())
		var got []string
		d, err := memfifo.Open(c.eps[0], memfifo.Config{Port: rpc.DefaultPort, Handlers: map[uint16]memfifo.HandlerConfig{1: {
			Public: true, Record: func(_ memfifo.Sender, rec []byte) { got = append(got, string(rec[wire.HeadLen:])) },
		}}})
		must(t, err)
		defer d.Close()
		_, err = c.nodes[1].Serve("x", rpc.ServerConfig{Inline: true,
			Handler: func(_ context.Context, _ mcd.NodeID, req, _ []byte) ([]byte, error) {
				return append(req, " and more, so that it is longer"...), nil
			}})
		must(t, err)
		one, two := wire.AppendRequest(nil, 7, "x", 0, []byte("one")), wire.AppendRequest(nil, 8, "x", 0, []byte("two"))
		must(t, d.Remote(memfifo.PublicKey(1, 1)).PushBatch(t.Context(), one, two))
		synctest.Wait()
		if len(got) != 2 || !strings.HasPrefix(got[0], "one ") || !strings.HasPrefix(got[1], "two ") {
			t.Errorf("%q", got)
		}
	})
}
