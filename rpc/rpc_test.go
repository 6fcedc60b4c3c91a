package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster is nodes in memory, with faults at their links.
type cluster struct {
	eps    []*mcd.Endpoint
	nodes  []*rpc.Domain
	faults []*fault.Link
}

// open makes a cluster, until the test ends. Without a spin it is for a synctest bubble; with one
// its links have no faults.
func open(t testing.TB, size int, spin time.Duration, f fault.Config, cfg rpc.Config) *cluster {
	t.Helper()
	c := &cluster{}
	mcfg := mcdtest.Config{Endpoint: mcd.Config{Spin: spin}}
	if spin == 0 {
		mcfg.Endpoint.Spin = -1
		mcfg.Wrap = func(node mcd.NodeID, _ int, inner transport.Link) transport.Link {
			l, err := fault.New(inner, rand.New(rand.NewPCG(3, uint64(node))), f)
			must(t, err)
			c.faults = append(c.faults, l)
			return l
		}
	}
	c.eps = mcdtest.Open(t, size, mcfg)
	for _, ep := range c.eps {
		d, err := rpc.Open(ep, cfg)
		must(t, err)
		c.nodes = append(c.nodes, d)
	}
	t.Cleanup(func() {
		for _, d := range c.nodes {
			_ = d.Close()
		}
	})
	return c
}

// bubble runs a test of a cluster in virtual time, of which a day is more than any takes.
func bubble(t *testing.T, size int, f fault.Config, cfg rpc.Config, do func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		late := time.AfterFunc(24*time.Hour, func() { panic(t.Name() + ": a day has passed, and it waits still") })
		defer late.Stop()
		do(t, open(t, size, 0, f, cfg))
	})
}

func (c *cluster) serve(t testing.TB, node int, service string, h rpc.Handler) *rpc.Server {
	t.Helper()
	s, err := c.nodes[node].Serve(service, rpc.ServerConfig{Handler: h})
	must(t, err)
	return s
}

func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func echo(_ context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
	return append(resp, req...), nil
}

// Each call gets its own response, and its handler runs once, whatever the network does; so do
// inline handlers, and calls of a node to itself.
func TestCall_OnceEach(t *testing.T) {
	for _, f := range []fault.Config{{}, {Loss: 0.1, Duplicate: 0.1, Reorder: 0.1}} {
		for _, inline := range []bool{false, true} {
			bubble(t, 2, f, rpc.Config{Concurrency: 3}, func(t *testing.T, c *cluster) {
				var ran [200]atomic.Int32
				_, err := c.nodes[1].Serve("double", rpc.ServerConfig{Inline: inline,
					Handler: func(_ context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
						ran[req[0]].Add(1)
						return append(append(resp, req...), req...), nil
					}})
				must(t, err)
				var calls sync.WaitGroup
				for i := range ran {
					calls.Go(func() {
						req := bytes.Repeat([]byte{byte(i)}, 1+i*i) // up to 39,602 bytes: many frames
						resp, err := c.nodes[i%2].Call(limit(t), 1, "double", req)
						if err != nil || !bytes.Equal(resp, append(req, req...)) {
							t.Errorf("call %d: %d bytes for %d, %v", i, len(resp), len(req), err)
						}
					})
				}
				calls.Wait()
				for i := range ran {
					if n := ran[i].Load(); n != 1 {
						t.Errorf("call %d ran %d times", i, n)
					}
				}
				if s := c.nodes[1].Counters(); s.Served != 200 || s.Refused+s.Malformed+s.Unexpected > 0 {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// Every failure is said at once, with what it is.
func TestCall_Errors(t *testing.T) {
	bubble(t, 3, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		ctx := limit(t)
		d := c.nodes[0]
		s := c.serve(t, 1, "echo", echo)
		c.serve(t, 1, "fail", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			return nil, errors.New("no such file")
		})
		c.serve(t, 1, "long", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			return make([]byte, rpc.MaxMessage+1), nil
		})
		fails := func(to mcd.NodeID, service string, req []byte, want error, text string) {
			t.Helper()
			resp, err := d.Call(ctx, to, service, req)
			if resp != nil || err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
				t.Errorf("%q, %v: want %v, %q", resp, err, want, text)
			}
		}
		fails(1, "nobody", nil, rpc.ErrNoService, "call node 1, service nobody: nobody serves it")
		fails(0, "nobody", nil, rpc.ErrNoService, "call node 0")
		fails(9, "echo", nil, mcd.ErrUnknownNode, "node 9")
		fails(1, "", nil, nil, "service of 0 bytes (want 1 to 255)")
		fails(1, strings.Repeat("x", 256), nil, nil, "service of 256 bytes (want 1 to 255)")
		fails(1, "echo", make([]byte, rpc.MaxMessage-3), rpc.ErrTooLarge, "at most 131052")
		fails(1, "long", nil, nil, "node 1, service long: response of 131053 bytes: too large (at most 131052)")
		fails(1, "fail", nil, nil, "node 1, service fail: no such file")
		_, err := d.Call(ctx, 1, "fail", nil)
		if e, ok := errors.AsType[*rpc.RemoteError](err); !ok || e.Node != 1 || e.Service != "fail" || e.Message != "no such file" {
			t.Errorf("%v", err)
		}
		longest := make([]byte, rpc.MaxMessage-4)
		if resp, err := d.Call(ctx, 1, "echo", longest); len(resp) != len(longest) || err != nil {
			t.Errorf("the longest: %d bytes, %v", len(resp), err)
		}
		if resp, err := d.Call(ctx, 1, "echo", nil); len(resp) != 0 || err != nil {
			t.Errorf("the shortest: %d bytes, %v", len(resp), err)
		}
		_, err = c.nodes[1].Serve("echo", rpc.ServerConfig{Handler: echo})
		if !errors.Is(err, rpc.ErrTaken) {
			t.Errorf("%v", err)
		}
		for _, bad := range []struct{ service string }{{""}, {strings.Repeat("x", 256)}, {"no handler"}} {
			if _, err := d.Serve(bad.service, rpc.ServerConfig{}); err == nil {
				t.Errorf("served %q", bad.service)
			}
		}
		must(t, s.Close())
		must(t, s.Close())
		fails(1, "echo", nil, rpc.ErrNoService, "")
		c.serve(t, 1, "echo", echo)
		_, err = d.Call(ctx, 1, "echo", nil)
		must(t, err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := d.Call(ended, 1, "echo", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		begun := time.Now()
		c.faults[2].Cut(true)
		fails(2, "echo", nil, memfifo.ErrPeerDown, "node 2 has not answered for 2s: what was under way may be lost (is the node up, with rpc open?)")
		if took := time.Since(begun); took > 2*memfifo.DefaultPeerTimeout {
			t.Errorf("it took %v", took)
		}
		must(t, d.Close())
		must(t, d.Close())
		fails(1, "echo", nil, net.ErrClosed, "")
		if _, err := d.Serve("x", rpc.ServerConfig{Handler: echo}); !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// A caller's deadline, its cancellation, its death and the server's Close end the handler's
// context.
func TestHandler_ContextEnds(t *testing.T) {
	for how, want := range map[string]error{
		"deadline": context.DeadlineExceeded, "cancel": context.Canceled, "dies": context.Canceled, "close": context.Canceled,
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
				began, ended := make(chan time.Duration, 1), make(chan error, 1)
				c.serve(t, 1, "wait", func(ctx context.Context, from mcd.NodeID, _, _ []byte) ([]byte, error) {
					at, set := ctx.Deadline()
					if set != (how == "deadline") || ctx.Value(1) != nil || ctx.Err() != nil || from != 0 {
						t.Errorf("deadline %v %v, node %d", at, set, from)
					}
					began <- time.Until(at)
					<-ctx.Done()
					ended <- ctx.Err()
					return nil, ctx.Err()
				})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if how == "deadline" {
					ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
					defer cancel()
				}
				result := make(chan error, 1)
				go func() { _, err := c.nodes[0].Call(ctx, 1, "wait", nil); result <- err }()
				if left := <-began; how == "deadline" && (left > 10*time.Second || left < 9900*time.Millisecond) {
					t.Errorf("%v are left of 10s", left)
				}
				switch how {
				case "cancel":
					cancel()
				case "dies":
					c.faults[0].Cut(true)
				case "close":
					must(t, c.nodes[1].Close())
				}
				// The caller's cancellation may overtake the server's own timer.
				if err := <-ended; !errors.Is(err, want) && !(how == "deadline" && errors.Is(err, context.Canceled)) {
					t.Errorf("the handler's context: %v", err)
				}
				err := <-result
				switch {
				case how == "dies" && !errors.Is(err, memfifo.ErrPeerDown), how == "close" && !errors.Is(err, rpc.ErrClosed),
					(how == "deadline" || how == "cancel") && !errors.Is(err, want):
					t.Errorf("the call: %v", err)
				}
			})
		})
	}
}

// A call that was cancelled before its handler began does not run it.
func TestHandler_DoesNotRunWhenTheCallIsOver(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{Concurrency: 1, Backlog: 1}, func(t *testing.T, c *cluster) {
		var ran atomic.Int32
		hold := make(chan struct{})
		c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			ran.Add(1)
			<-hold
			return nil, nil
		})
		results := make(chan error, 3)
		go func() { _, err := c.nodes[0].Call(limit(t), 1, "hold", nil); results <- err }()
		synctest.Wait()
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		go func() { _, err := c.nodes[0].Call(short, 1, "hold", nil); results <- err }() // waits in the backlog
		synctest.Wait()
		if _, err := c.nodes[0].Call(limit(t), 1, "hold", nil); !errors.Is(err, rpc.ErrOverloaded) {
			t.Errorf("more than the backlog: %v", err)
		}
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		close(hold)
		must(t, <-results)
		synctest.Wait()
		if n := ran.Load(); n != 1 {
			t.Errorf("the handler ran %d times", n)
		}
	})
}

// A server that restarts: a call fails, as its handler may have run; an idempotent one is made
// again and succeeds.
func TestCall_ServerRestarts(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		ctx := limit(t)
		hang := func(ctx context.Context, _ mcd.NodeID, _, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, nil
		}
		c.serve(t, 1, "x", hang)
		results := make([]chan error, 2)
		for i := range results {
			results[i] = make(chan error, 1)
			go func() {
				resp, err := c.nodes[0].CallWith(ctx, 1, "x", []byte("again"), rpc.Options{Idempotent: i == 1})
				if err == nil && string(resp) != "again" {
					err = fmt.Errorf("response %q", resp)
				}
				results[i] <- err
			}()
		}
		synctest.Wait()
		c.faults[1].Cut(true) // it dies without a word
		must2(t, c.nodes[1].Close())
		c.faults[1].Cut(false)
		d, err := rpc.Open(c.eps[1], rpc.Config{})
		must(t, err)
		c.nodes[1] = d
		c.serve(t, 1, "x", echo)
		if err := <-results[0]; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("a call at most once: %v", err)
		}
		if err := <-results[1]; err != nil {
			t.Errorf("an idempotent call: %v", err)
		}
		if _, err := c.nodes[0].Call(ctx, 1, "x", nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// must2 takes the error of a Close that cannot reach anybody.
func must2(t testing.TB, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, memfifo.ErrPeerDown) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// A node that was called is not probed for ever, and a long call is.
func TestCall_ProbesWhileItWaits(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "sleep", func(_ context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
			time.Sleep(time.Duration(len(req)) * time.Second)
			return resp, nil
		})
		ctx := context.Background()
		_, err := c.nodes[0].Call(ctx, 1, "sleep", make([]byte, 60))
		must(t, err)
		time.Sleep(3 * memfifo.DefaultPeerTimeout)
		before := c.eps[0].Counters().TxMessages
		time.Sleep(time.Hour)
		if n := c.eps[0].Counters().TxMessages - before; n > 0 {
			t.Errorf("%d frames in an idle hour", n)
		}
	})
}

// Records that make no sense are counted and dropped; a request of another version is told so.
func TestReceive_Garbage(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
		c.serve(t, 1, "echo", echo)
		must(t, c.nodes[0].Close())
		d, err := memfifo.Open(c.eps[0], memfifo.Config{Port: rpc.DefaultPort})
		must(t, err)
		defer d.Close()
		var answers [][]byte
		_, err = d.Handle(1, memfifo.HandlerConfig{Public: true, Record: func(_ memfifo.Sender, rec []byte) {
			answers = append(answers, bytes.Clone(rec))
		}})
		must(t, err)
		number, request2 := "12345678", "request2"
		for _, rec := range []string{
			"", "\x11", "\x10\x00\x00\x00" + number, "\x14\x00\x00\x00" + number, // no kind
			"\x11\x00\x00\x00" + number + number + "echo", "\x11\x00\x05\x00" + number + number + "echo", // no name, or a part
			"\x11\x01\x04\x00" + number + number + "echo", "\x11\x00\x04\x01" + number + number + "echo",
			"\x11\x00\x04\x00" + number + "\xff\xff\xff\xff\xff\xff\xff\xffecho", // a deadline beyond time
			"\x12\x07\x00\x00" + number, "\x12\x00\x01\x00" + number, "\x13\x00\x00\x00" + number + "x",
			"\x12\x00\x00\x00" + number, "\x13\x00\x00\x00" + number, // a response and a cancellation of no call
			"\x21\x00\x00\x00" + request2, "\x22\x00\x00\x00" + number, "\x22\x05\x00\x00" + number, // version 2
			"\x11\x00\x04\x00" + number + "\x00\x00\x00\x00\x00\x00\x00\x00echodata",
		} {
			must(t, d.Remote(memfifo.PublicKey(1, 1)).Push(limit(t), []byte(rec)))
			must(t, d.Flush(limit(t)))
			synctest.Wait()
		}
		if s := c.nodes[1].Counters(); s.Malformed != 12 || s.Version != 2 || s.Unexpected != 2 || s.Served != 1 || s.Refused != 1 {
			t.Errorf("%+v", s)
		}
		want := []string{"\x12\x05\x00\x00" + request2, "\x12\x00\x00\x00" + number + "data"}
		if len(answers) != 2 || string(answers[0]) != want[0] || string(answers[1]) != want[1] {
			t.Errorf("answers %q", answers)
		}
	})
}

// A call whose response has memory allocates nothing where the handler is inline, and little else.
func TestCall_Allocations(t *testing.T) {
	for _, inline := range []bool{true, false} {
		c := open(t, 2, 100*time.Microsecond, fault.Config{}, rpc.Config{})
		_, err := c.nodes[1].Serve("echo", rpc.ServerConfig{Handler: echo, Inline: inline})
		must(t, err)
		ctx, req := context.Background(), make([]byte, 64)
		resp := make([]byte, 0, 64)
		call := func() {
			got, err := c.nodes[0].CallWith(ctx, 1, "echo", req, rpc.Options{Response: resp})
			if err != nil || len(got) != 64 {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
		}
		for range 2000 {
			call()
		}
		want := 2.0 // the job and its context
		if inline {
			want = 0
		}
		if n := testing.AllocsPerRun(1000, call); n > want {
			t.Errorf("inline %v: %v allocations, want %v", inline, n, want)
		}
	}
}
