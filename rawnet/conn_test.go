package rawnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport/fault"
)

// bubble runs a test in virtual time, with a cluster.
func bubble(t *testing.T, o options, do func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, o)
		do(t, c)
	})
}

// isOp checks that an error is package net's, of an operation, and is want.
func isOp(t *testing.T, err error, op string, want error, text string) {
	t.Helper()
	e, ok := errors.AsType[*net.OpError](err)
	if !ok || e.Op != op || e.Net != "rawlane" || !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("%v: want a net.OpError of %s that is %q and says %q", err, op, want, text)
	}
	timeout := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT)
	if ok && e.Timeout() != timeout {
		t.Errorf("%v: Timeout() is %v", err, !timeout)
	}
}

// Bytes come in order and once, in both directions at a time, through windows much shorter than
// what is sent, and over a network that loses, duplicates and reorders frames.
func TestConn_CarriesBytes(t *testing.T) {
	for _, f := range []fault.Config{{}, {Loss: 0.05, Duplicate: 0.05, Reorder: 0.05}} {
		bubble(t, options{fault: f, seed: 5, cfg: rawnet.Config{Window: 10_000}}, func(t *testing.T, c *cluster) {
			a, b := c.pair(t, "bytes")
			data := make([]byte, 500_000)
			for i := range data {
				data[i] = byte(rand.IntN(256))
			}
			var all sync.WaitGroup
			for _, conn := range []*rawnet.Conn{a, b} {
				all.Go(func() {
					for rest := data; len(rest) > 0; {
						n, err := conn.Write(rest[:min(len(rest), 1+rand.IntN(30_000))])
						if err != nil {
							t.Errorf("after %d bytes: %v", len(data)-len(rest), err)
							return
						}
						rest = rest[n:]
					}
					must(t, conn.CloseWrite())
				})
				all.Go(func() {
					var got bytes.Buffer
					b := make([]byte, 30_000)
					for {
						n, err := conn.Read(b[:1+rand.IntN(len(b))])
						got.Write(b[:n])
						if errors.Is(err, io.EOF) {
							break
						}
						if err != nil {
							t.Errorf("after %d bytes: %v", got.Len(), err)
							return
						}
					}
					if !bytes.Equal(got.Bytes(), data) {
						t.Errorf("%d bytes came, not the %d that were sent", got.Len(), len(data))
					}
				})
			}
			all.Wait()
			for k, n := range c.nets {
				if s := n.Counters(); s.Violations+s.Malformed > 0 {
					t.Errorf("node %d: %+v", k, s)
				}
			}
		})
	}
}

// Each failure is package net's own error, and says the cause.
func TestDial_Errors(t *testing.T) {
	bubble(t, options{nodes: 3, cfg: rawnet.Config{Backlog: 2, MaxConns: 10, Names: map[string]mcd.NodeID{"storage": 1}}},
		func(t *testing.T, c *cluster) {
			n := c.nets[0]
			dial := func(network, address string) error {
				conn, err := n.Dial(network, address)
				if err == nil {
					t.Errorf("dial %s: connected", address)
					_ = conn.Close()
				}
				return err
			}
			isOp(t, dial("rawlane", "1:nobody"), "dial", syscall.ECONNREFUSED, "1:nobody: connection refused: nobody listens")
			isOp(t, dial("tcp", "storage:x"), "dial", syscall.ECONNREFUSED, "1:x")
			isOp(t, dial("rawlane", "0:nobody"), "dial", syscall.ECONNREFUSED, "nobody listens") // this node itself
			isOp(t, dial("rawlane", "7:x"), "dial", mcd.ErrUnknownNode, "node 7")
			for _, bad := range []string{"1", "1:", ":x", "", "1:" + strings.Repeat("x", 256)} {
				if e, ok := errors.AsType[*net.AddrError](dial("rawlane", bad)); !ok {
					t.Errorf("%q: %v", bad, e)
				}
			}
			if e, ok := errors.AsType[*net.DNSError](dial("rawlane", "backup:x")); !ok || !e.IsNotFound {
				t.Errorf("an unknown name: %v", e)
			}
			if _, ok := errors.AsType[net.UnknownNetworkError](dial("udp", "1:x")); !ok {
				t.Error("a stream over udp")
			}
			l, err := c.nets[1].Listen("storage:slow")
			must(t, err)
			_, err = c.nets[1].Listen("slow")
			isOp(t, err, "listen", syscall.EADDRINUSE, "1:slow")
			_, err = c.nets[1].Listen("2:slow")
			if _, ok := errors.AsType[*net.AddrError](err); !ok {
				t.Errorf("to listen at another node: %v", err)
			}
			var waiting []net.Conn
			for range 2 {
				conn, err := n.Dial("rawlane", "1:slow")
				must(t, err)
				waiting = append(waiting, conn)
			}
			isOp(t, dial("rawlane", "1:slow"), "dial", syscall.ECONNREFUSED, "backlog is full")
			conn, err := l.Accept()
			must(t, err)
			must(t, conn.Close())
			again, err := n.Dial("rawlane", "1:slow")
			must(t, err)
			must(t, again.Close())
			must(t, l.Close())
			isOp(t, l.Close(), "close", net.ErrClosed, "")
			_, err = l.Accept()
			isOp(t, err, "accept", net.ErrClosed, "1:slow")
			_, err = waiting[1].Read(make([]byte, 1))
			isOp(t, err, "read", syscall.ECONNRESET, "listener closed")
			begun := time.Now()
			c.faults[2].Cut(true)
			isOp(t, dial("rawlane", "2:x"), "dial", syscall.ETIMEDOUT, "node 2 has not answered for 2s")
			isOp(t, dial("rawlane", "2:x"), "dial", memfifo.ErrPeerDown, "node 2 has not answered for 2s")
			if took := time.Since(begun); took > 3*memfifo.DefaultPeerTimeout {
				t.Errorf("two took %v", took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err = n.DialContext(ctx, "rawlane", "2:x")
			isOp(t, err, "dial", context.DeadlineExceeded, "")
			_, err = n.DialContext(ctx, "rawlane", "1:nobody")
			isOp(t, err, "dial", context.DeadlineExceeded, "")
			c.faults[2].Cut(false)
			isOp(t, dial("rawlane", "2:x"), "dial", syscall.ECONNREFUSED, "")
			must(t, n.Close())
			must(t, n.Close())
			isOp(t, dial("rawlane", "1:x"), "dial", net.ErrClosed, "")
			_, err = n.Listen("x")
			isOp(t, err, "listen", net.ErrClosed, "")
		})
}

// A Net has no more connections than it may, and those that come beyond are refused.
func TestDial_TooManyConnections(t *testing.T) {
	bubble(t, options{nodes: 3, cfg: rawnet.Config{MaxConns: 3}}, func(t *testing.T, c *cluster) {
		_, err := c.nets[2].Listen("x")
		must(t, err)
		for range 3 {
			_, err := c.nets[0].Dial("rawlane", "2:x")
			must(t, err)
		}
		_, err = c.nets[0].Dial("rawlane", "2:x")
		isOp(t, err, "dial", syscall.EMFILE, "too many streams (3: close some)")
		_, err = c.nets[1].Dial("rawlane", "2:x")
		isOp(t, err, "dial", syscall.ECONNREFUSED, "Config.MaxConns")
	})
}

// Half closes, as a net.TCPConn does them.
func TestConn_HalfCloses(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "half")
		_, err := a.Write([]byte("question"))
		must(t, err)
		must(t, a.CloseWrite())
		must(t, a.CloseWrite())
		_, err = a.Write([]byte("more"))
		isOp(t, err, "write", syscall.EPIPE, "")
		got, err := io.ReadAll(b)
		if string(got) != "question" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		_, err = b.Write([]byte("answer"))
		must(t, err)
		must(t, b.Close())
		got, err = io.ReadAll(a)
		if string(got) != "answer" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		must(t, a.Close())
		isOp(t, a.Close(), "close", net.ErrClosed, "")
		isOp(t, a.CloseWrite(), "close", net.ErrClosed, "")
		isOp(t, a.CloseRead(), "close", net.ErrClosed, "")
		isOp(t, a.SetDeadline(time.Time{}), "set", net.ErrClosed, "")

		a, b = c.pair(t, "read")
		_, err = a.Write([]byte("unread"))
		must(t, err)
		synctest.Wait()
		must(t, b.CloseRead())
		for range 20 { // more than a window: what nobody reads is dropped
			_, err = a.Write(make([]byte, 100_000))
			must(t, err)
		}
		if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%d, %v", n, err)
		}
		_, err = b.Write([]byte("back"))
		must(t, err)
		must(t, b.Close())
		synctest.Wait()
		_, err = a.Write([]byte("nobody reads"))
		isOp(t, err, "write", syscall.EPIPE, "broken pipe")
		got, err = io.ReadAll(a)
		if string(got) != "back" || err != nil {
			t.Errorf("what came before the close: %q, %v", got, err)
		}
	})
}

// Close, CloseRead and CloseWrite end the waits of other goroutines, of those that wait for their
// turn among them.
func TestConn_CloseEndsWaits(t *testing.T) {
	c := open(t, options{spin: time.Microsecond}) // in real time: a bubble waits for no mutex
	a, b := c.pair(t, "waits")
	var begun sync.WaitGroup
	start := func(ends chan error, do func() error) {
		begun.Add(1)
		go func() { begun.Done(); ends <- do() }()
	}
	reads, writes, accepts := make(chan error, 2), make(chan error, 2), make(chan error, 2)
	l, err := c.nets[1].Listen("x")
	must(t, err)
	for range 2 {
		start(reads, func() error { _, err := a.Read(make([]byte, 1)); return err })
		start(writes, func() error { _, err := a.Write(make([]byte, 10<<20)); return err }) // nobody reads
		start(accepts, func() error { _, err := l.Accept(); return err })
	}
	begun.Wait()
	must(t, a.Close())
	must(t, l.Close())
	for range 2 {
		isOp(t, <-reads, "read", net.ErrClosed, "use of closed network connection")
		isOp(t, <-writes, "write", net.ErrClosed, "use of closed network connection")
		isOp(t, <-accepts, "accept", net.ErrClosed, "use of closed network connection")
	}
	_, err = io.Copy(io.Discard, b)
	must(t, err)
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "halves")
		go func() { _, err := a.Read(make([]byte, 1)); reads <- err }()
		go func() { _, err := a.Write(make([]byte, 10<<20)); writes <- err }()
		synctest.Wait()
		must(t, a.CloseRead())
		must(t, a.CloseWrite())
		if err := <-reads; !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
		isOp(t, <-writes, "write", syscall.EPIPE, "")
	})
}

// A peer that dies without a word, that leaves, or whose program restarts: what waits is reset, and
// the error names the node. The next connection is to its next life.
func TestConn_PeerIsDown(t *testing.T) {
	for _, how := range []string{"dies", "leaves", "restarts"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, options{nodes: 3}, func(t *testing.T, c *cluster) {
				a, b := c.pair(t, "x")
				other, err := c.nets[2].Listen("x")
				must(t, err)
				beside, err := c.nets[0].Dial("rawlane", "2:x")
				must(t, err)
				reads := make(chan error, 1)
				go func() { _, err := a.Read(make([]byte, 1)); reads <- err }()
				synctest.Wait()
				begun := time.Now()
				switch how {
				case "leaves":
					must(t, c.nets[1].Close())
				default:
					c.faults[1].Cut(true)
				}
				if how == "restarts" {
					go func() { _ = c.nets[1].Close() }()
					time.Sleep(10 * memfifo.DefaultPeerTimeout / 2)
				}
				err = <-reads
				if how == "leaves" {
					if !errors.Is(err, io.EOF) {
						t.Errorf("%v", err)
					}
					_, err = a.Write([]byte("x"))
					isOp(t, err, "write", syscall.EPIPE, "")
				} else {
					isOp(t, err, "read", syscall.ECONNRESET, "node 1 has not answered")
					isOp(t, err, "read", memfifo.ErrPeerDown, "")
					_, err = a.Write([]byte("x"))
					isOp(t, err, "write", syscall.ECONNRESET, "node 1")
				}
				if took := time.Since(begun); took > 6*memfifo.DefaultPeerTimeout {
					t.Errorf("it took %v", took)
				}
				_, err = beside.Write([]byte("still here"))
				must(t, err)
				conn, err := other.Accept()
				must(t, err)
				must(t, conn.Close())
				if how == "dies" {
					_, err := b.Read(make([]byte, 1))
					isOp(t, err, "read", syscall.ECONNRESET, "node 0 has not answered")
				} else {
					_, err := b.Read(make([]byte, 1))
					isOp(t, err, "read", net.ErrClosed, "")
				}
				c.faults[1].Cut(false)
				synctest.Wait() // what was on its way has come: the next life begins
				if how != "dies" {
					n, err := rawnet.Open(c.eps[1], rawnet.Config{})
					must(t, err)
					c.nets[1] = n
				}
				a, b = c.pair(t, "again")
				_, err = a.Write([]byte("hello"))
				must(t, err)
				must(t, a.Close())
				if got, err := io.ReadAll(b); string(got) != "hello" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		})
	}
}

// Both ends have the same two addresses, and these are package net's.
func TestAddresses(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "echo")
		if a.LocalAddr() != b.RemoteAddr() || b.LocalAddr() != a.RemoteAddr() {
			t.Errorf("%v -> %v, %v -> %v", a.LocalAddr(), a.RemoteAddr(), b.LocalAddr(), b.RemoteAddr())
		}
		if s := a.RemoteAddr(); s.String() != "1:echo" || s.Network() != "rawlane" {
			t.Errorf("%v", s)
		}
		for _, service := range []string{"x", ":x", "1:x"} {
			l, err := c.nets[1].Listen(service)
			must(t, err)
			if l.Addr().String() != "1:x" {
				t.Errorf("%s: %v", service, l.Addr())
			}
			must(t, l.Close())
		}
	})
}

// A node connects to itself.
func TestConn_ToItself(t *testing.T) {
	bubble(t, options{nodes: 1}, func(t *testing.T, c *cluster) {
		l, err := c.nets[0].Listen("self")
		must(t, err)
		done := make(chan error)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				_, err = io.Copy(conn, conn)
				_ = conn.Close()
			}
			done <- err
		}()
		conn, err := c.nets[0].Dial("rawlane", "0:self")
		must(t, err)
		data := bytes.Repeat([]byte("self"), 300_000)
		go func() { _, _ = conn.Write(data); _ = conn.(*rawnet.Conn).CloseWrite() }()
		got, err := io.ReadAll(conn)
		must(t, errors.Join(err, <-done))
		if !bytes.Equal(got, data) {
			t.Errorf("%d bytes of %d", len(got), len(data))
		}
	})
}

// A stream whose reader is slow holds up no other one, whatever it has sent.
func TestConn_NoneHoldsUpAnother(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		var stuck []*rawnet.Conn
		for range 10 {
			a, _ := c.pair(t, "stuck")
			stuck = append(stuck, a)
			go func() { _, _ = a.Write(make([]byte, 10<<20)) }()
		}
		synctest.Wait()
		a, b := c.pair(t, "quick")
		for range 100 {
			_, err := a.Write([]byte("ping"))
			must(t, err)
			got := make([]byte, 4)
			_, err = io.ReadFull(b, got)
			must(t, err)
		}
		for _, s := range stuck {
			must(t, s.Close())
		}
	})
}

// Many goroutines connect, speak and close at a time, and each is served; nothing is left.
func TestConn_Churn(t *testing.T) {
	c := open(t, options{nodes: 3, spin: 20 * time.Microsecond, bare: true})
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	var serving, dialing sync.WaitGroup
	for _, n := range c.nets {
		l, err := n.Listen("echo")
		must(t, err)
		defer l.Close()
		serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				serving.Go(func() {
					_, _ = io.Copy(conn, conn)
					_ = conn.Close()
				})
			}
		})
	}
	for k, n := range c.nets {
		for w := range 4 {
			dialing.Go(func() {
				for i := range rounds {
					to := []string{"0:echo", "1:echo", "2:echo"}[(k+w+i)%3]
					conn, err := n.Dial("rawlane", to)
					if err != nil {
						t.Errorf("%d -> %s: %v", k, to, err)
						return
					}
					want := []byte(to)
					_, err = conn.Write(want)
					got := make([]byte, len(want))
					if err == nil {
						_, err = io.ReadFull(conn, got)
					}
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("%d -> %s: %q, %v", k, to, got, err)
					}
					_ = conn.Close()
				}
			})
		}
	}
	dialing.Wait()
	for _, n := range c.nets {
		must(t, n.Close())
		if s := n.Counters(); s.Dialed != uint64(4*rounds) || s.Violations+s.Malformed > 0 {
			t.Errorf("%+v", s)
		}
	}
	serving.Wait()
}
