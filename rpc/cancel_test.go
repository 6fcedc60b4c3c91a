package rpc_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/rpc/internal/wire"
	"github.com/rawlane/rawlane/transport/fault"
)

// stuff cuts node 1 off, and has calls to it wait until there is no room for anything more.
func (c *cluster) stuff(t *testing.T) {
	t.Helper()
	c.faults[1].Cut(true)
	for range 10 {
		go func() { _, _ = c.nodes[0].Call(t.Context(), 1, "stuff", make([]byte, 120_000)) }()
	}
	synctest.Wait()
}

// A handler whose caller gives up hears of it, though there is no room for that just then; and a
// domain that closes does not wait for the room.
func TestCancel_WaitsForRoom(t *testing.T) {
	for _, closes := range []bool{false, true} {
		bubble(t, 2, fault.Config{}, rpc.Config{PeerTimeout: time.Minute}, func(t *testing.T, c *cluster) {
			ended := make(chan error, 1)
			c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error)
			go func() { _, err := c.nodes[0].Call(ctx, 1, "wait", nil); result <- err }()
			synctest.Wait()
			c.stuff(t)
			cancel()
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if closes {
				closed := make(chan error)
				go func() { closed <- c.nodes[0].Close() }()
				synctest.Wait()
				c.faults[1].Cut(false)
				must(t, <-closed)
			}
			c.faults[1].Cut(false)
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the handler's context: %v", err)
				}
			case <-time.After(time.Hour):
				t.Error("the handler waits still")
			}
		})
	}
}

// A call that waits for room as its node dies fails when that is known, and its request does not go
// to the node afterwards, when nobody waits for the response.
func TestCall_DiesWithItsNodeWithoutRoom(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		var ran atomic.Int32
		c.serve(t, 1, "count", func(_ context.Context, _ mcd.NodeID, _, resp []byte) ([]byte, error) {
			ran.Add(1)
			return resp, nil
		})
		_, err := c.nodes[0].Call(t.Context(), 1, "count", nil)
		must(t, err)
		c.stuff(t)
		begun := time.Now()
		_, err = c.nodes[0].Call(t.Context(), 1, "count", nil)
		if took := time.Since(begun); !errors.Is(err, memfifo.ErrPeerDown) || took > 3*memfifo.DefaultPeerTimeout/2 {
			t.Errorf("%v after %v", err, took)
		}
		c.faults[1].Cut(false)
		time.Sleep(time.Minute)
		if n := ran.Load(); n != 1 {
			t.Errorf("the handler ran %d times, want once", n)
		}
	})
}

// A second request of a number whose first one runs makes no sense, and has no handler: the first
// one's ends as its caller cancels it, or dies, and the domain closes.
func TestCancel_OfANumberThatCameTwice(t *testing.T) {
	for _, how := range []string{"cancelled", "down", "closed"} {
		bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
			must(t, c.nodes[0].Close())
			d, err := memfifo.Open(c.eps[0], memfifo.Config{Port: rpc.DefaultPort})
			must(t, err)
			defer d.Close()
			free := make(chan struct{})
			defer close(free)
			var began, running atomic.Int32
			c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
				began.Add(1)
				running.Add(1)
				defer running.Add(-1)
				select {
				case <-ctx.Done():
				case <-free:
				}
				return nil, nil
			})
			r := d.Remote(memfifo.PublicKey(1, 1))
			for range 2 {
				must(t, r.Push(t.Context(), wire.AppendRequest(nil, 7, "wait", 0, nil)))
			}
			synctest.Wait()
			if n, s := began.Load(), c.nodes[1].Counters(); n != 1 || s.Served != 1 || s.Malformed != 1 {
				t.Errorf("%d handlers have begun, want 1: %+v", n, s)
			}
			switch how {
			case "cancelled":
				must(t, r.Push(t.Context(), wire.AppendHead(nil, wire.Cancellation, wire.OK, 7)))
			case "down":
				c.faults[0].Cut(true)
			case "closed":
				go func() { _ = c.nodes[1].Close() }()
			}
			time.Sleep(time.Hour)
			if n := running.Load(); n > 0 {
				t.Errorf("%s: %d handlers run an hour later", how, n)
			}
		})
	}
}
