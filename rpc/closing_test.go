package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// reopen gives a node the next life of its domain.
func (c *cluster) reopen(t *testing.T, node int) {
	t.Helper()
	d, err := rpc.Open(c.eps[node], rpc.Config{})
	must(t, err)
	c.nodes[node] = d
}

// A request that waits behind others as its server's domain closes fails with that, and not with a
// deadline that nobody has set; and if it is idempotent, the server's next life answers it.
func TestClose_OfTheServerWhereRequestsWait(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{Concurrency: 1}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { <-hold; return nil, nil })
		c.serve(t, 1, "echo", echo)
		call := func(service string, o rpc.Options) chan error {
			end := make(chan error, 1)
			go func() { _, err := c.nodes[0].CallWith(t.Context(), 1, service, nil, o); end <- err }()
			synctest.Wait()
			return end
		}
		runs, once, again := call("hold", rpc.Options{}), call("echo", rpc.Options{}), call("echo", rpc.Options{Idempotent: true})
		closed := make(chan error)
		go func() { closed <- c.nodes[1].Close() }()
		synctest.Wait()
		close(hold)
		must(t, <-closed)
		must(t, <-runs)
		if err := <-once; !errors.Is(err, rpc.ErrClosed) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want ErrClosed", err)
		}
		c.reopen(t, 1)
		c.serve(t, 1, "echo", echo)
		must(t, <-again)
	})
}

// A handler that returns as its context ends, because the domain closes, has not answered: its caller
// hears of the close, and an idempotent call is made again. What a handler fails with otherwise is
// its own.
func TestClose_OfTheServerEndsHandlers(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("wait for the disk: %w", ctx.Err())
		})
		c.serve(t, 1, "fail", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			return nil, context.Canceled
		})
		var remote *rpc.RemoteError
		if _, err := c.nodes[0].Call(t.Context(), 1, "fail", nil); !errors.As(err, &remote) {
			t.Errorf("%v, want a RemoteError", err)
		}
		once, again := make(chan error, 1), make(chan error, 1)
		go func() { _, err := c.nodes[0].Call(t.Context(), 1, "wait", nil); once <- err }()
		go func() {
			_, err := c.nodes[0].CallWith(t.Context(), 1, "wait", nil, rpc.Options{Idempotent: true})
			again <- err
		}()
		synctest.Wait()
		must(t, c.nodes[1].Close())
		if err := <-once; !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		c.reopen(t, 1)
		c.serve(t, 1, "wait", echo)
		must(t, <-again)
	})
}

// A server whose caller has died answers nobody: its Close waits for nothing, and names nobody.
func TestClose_BehindACallerThatHasDied(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		ended := make(chan bool)
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			ended <- true
			return nil, ctx.Err()
		})
		go func() { _, _ = c.nodes[0].Call(t.Context(), 1, "wait", nil) }()
		time.Sleep(time.Second)
		c.faults[0].Cut(true)
		<-ended
		begun := time.Now()
		if err := c.nodes[1].Close(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// A response that waits for room as its caller dies does not go to the caller's next life: Close waits
// for nothing then, and names nobody.
func TestClose_BehindACallerThatDiedWithoutRoom(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		c.serve(t, 1, "long", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			<-hold
			return make([]byte, 120_000), nil
		})
		for range 10 { // for more than there is room for
			go func() { _, _ = c.nodes[0].Call(t.Context(), 1, "long", nil) }()
		}
		synctest.Wait()
		c.faults[0].Cut(true)
		close(hold)
		time.Sleep(3 * memfifo.DefaultPeerTimeout / 2)
		begun := time.Now()
		if err := c.nodes[1].Close(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// A deadline of the handler's own that passes as the domain closes is not the caller's, which has none.
func TestClose_OfTheServerBehindADeadlineOfAHandler(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "disk", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			<-ctx.Done()
			return nil, fmt.Errorf("wait for the disk: %w", ctx.Err())
		})
		called := make(chan error, 1)
		go func() { _, err := c.nodes[0].Call(t.Context(), 1, "disk", nil); called <- err }()
		synctest.Wait()
		must(t, c.nodes[1].Close())
		var remote *rpc.RemoteError
		if err := <-called; !errors.As(err, &remote) {
			t.Errorf("%v, want a RemoteError", err)
		}
	})
}

// Requests that wait as the domain closes are answered, though a response before them waits for room
// until its node is found to be dead.
func TestClose_OfTheServerBehindANodeThatTakesNone(t *testing.T) {
	cfg := rpc.Config{Concurrency: 1, PeerTimeout: time.Minute}
	bubble(t, 3, fault.Config{}, cfg, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "wait", func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		call := func(from, to int, req []byte) chan error {
			end := make(chan error, 1)
			go func() { _, err := c.nodes[from].Call(t.Context(), mcd.NodeID(to), "wait", req); end <- err }()
			synctest.Wait()
			return end
		}
		call(2, 1, nil)
		waits := call(0, 1, nil)
		c.faults[2].Cut(true)
		for range 10 { // for which there is no room
			call(1, 2, make([]byte, 120_000))
		}
		begun := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- c.nodes[1].Close() }()
		if err := <-waits; !errors.Is(err, rpc.ErrClosed) || time.Since(begun) > time.Second {
			t.Errorf("%v after %v, want ErrClosed at once", err, time.Since(begun))
		}
		<-closed
	})
}

// Calls that wait for room as their domain closes fail with that at once, and their node's silence
// is not waited for.
func TestClose_EndsCallsThatWaitForRoom(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{PeerTimeout: time.Minute}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "echo", echo)
		must(t, func() error { _, err := c.nodes[0].Call(t.Context(), 1, "echo", nil); return err }())
		c.faults[1].Cut(true)
		const calls = 10 // for most of which there is no room
		ended := make(chan error, calls)
		for range calls {
			go func() { _, err := c.nodes[0].Call(t.Context(), 1, "echo", make([]byte, 120_000)); ended <- err }()
		}
		synctest.Wait()
		begun := time.Now()
		go func() { _ = c.nodes[0].Close() }()
		for range calls {
			if err := <-ended; !errors.Is(err, rpc.ErrClosed) || time.Since(begun) > time.Second {
				t.Errorf("%v after %v, want ErrClosed at once", err, time.Since(begun))
			}
		}
	})
}

// slowLink lets one long frame go each half a second, while it is slow.
type slowLink struct {
	transport.Link
	slow bool
	next time.Time
}

func (l *slowLink) Send(frames []transport.Frame) (int, error) {
	for i, f := range frames {
		if l.slow && len(f.Payload) > 200 {
			if time.Now().Before(l.next) {
				continue
			}
			l.next = time.Now().Add(500 * time.Millisecond)
		}
		if _, err := l.Link.Send(frames[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(frames), nil
}

// openSlow opens a node that calls, and one whose responses are long; slow has them go slowly.
func openSlow(t *testing.T) (caller, server *rpc.Domain, slow func()) {
	t.Helper()
	l := &slowLink{}
	eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1},
		Wrap: func(n mcd.NodeID, _ int, inner transport.Link) transport.Link {
			if n == 0 {
				return inner
			}
			l.Link = inner
			return l
		}})
	caller, err := rpc.Open(eps[0], rpc.Config{})
	must(t, err)
	server, err = rpc.Open(eps[1], rpc.Config{})
	must(t, err)
	long := func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { return make([]byte, 60_000), nil }
	_, err = server.Serve("long", rpc.ServerConfig{Handler: long})
	must(t, err)
	_, err = caller.Call(t.Context(), 1, "long", nil)
	must(t, err)
	return caller, server, func() { l.slow = true }
}

// A server closes soon behind a node that takes responses slowly: those for which nobody waits any
// more are not sent, and the others for two peer timeouts. It names the node that has not taken these.
func TestClose_BehindANodeThatIsSlow(t *testing.T) {
	for how, most := range map[string]time.Duration{"given up": 2, "too late": 2, "waits": 5} {
		t.Run(how, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { closeBehindSlow(t, how, most) }) })
	}
}

func closeBehindSlow(t *testing.T, how string, most time.Duration) {
	caller, server, slow := openSlow(t)
	slow()
	ctx, cancel := context.WithCancel(t.Context())
	if how == "too late" {
		ctx = slowClock{ctx, time.Now().Add(time.Second)}
	}
	var calls sync.WaitGroup
	for range 200 {
		calls.Go(func() { _, _ = caller.Call(ctx, 1, "long", nil) })
	}
	time.Sleep(time.Second)
	if how == "given up" {
		cancel()
	}
	time.Sleep(time.Minute)
	begun := time.Now()
	err := server.Close()
	if took := time.Since(begun); took > most*memfifo.DefaultPeerTimeout {
		t.Errorf("Close took %v", took)
	}
	if how == "waits" && (err == nil || !strings.Contains(err.Error(), "node 0 has not taken its responses")) {
		t.Errorf("Close: %v", err)
	}
	cancel()
	calls.Wait()
	_ = caller.Close()
}
