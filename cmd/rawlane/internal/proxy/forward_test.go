package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/rawnet"
)

// open gives two nodes a Net each, for as long as the test.
func open(t *testing.T) (nets []*rawnet.Net) {
	t.Helper()
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeAll() })
	for _, ep := range eps {
		n, err := rawnet.Open(ep, rawnet.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		nets = append(nets, n)
	}
	return nets
}

// chain is a TCP address whose connections go over rawlane to another one, by a proxy on each of two
// nodes, for as long as the test. stop ends the proxies, and returns when they have ended.
func chain(t *testing.T, server string) (addr string, failures <-chan error, stop func()) {
	t.Helper()
	nets := open(t)
	inner, err := nets[1].Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	outer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 100)
	note := func(_ net.Addr, err error) { failed <- err }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	client := &forwarder{failed: note, dial: func(ctx context.Context) (net.Conn, error) { return nets[0].DialTarget(ctx, "1:server") }}
	go func() { ended <- client.serve(ctx, outer) }()
	tcp := &forwarder{failed: note, dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server)
	}}
	go func() { ended <- tcp.serve(ctx, inner) }()
	over := false
	stop = func() {
		if cancel(); !over {
			over = true
			if err := errors.Join(<-ended, <-ended); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return outer.Addr().String(), failed, stop
}

// serve runs a TCP server's part for each connection, for as long as the test.
func serve(t *testing.T, part func(c *net.TCPConn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go part(c.(*net.TCPConn))
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // far longer than any of this takes
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

var long = bytes.Repeat([]byte("0123456789"), 50_000)

// The end of one half is passed on, and the other half goes on.
func TestHalfClose(t *testing.T) {
	t.Run("by the client", func(t *testing.T) {
		addr, _, _ := chain(t, serve(t, func(c *net.TCPConn) {
			got, err := io.ReadAll(c)
			fmt.Fprintf(c, "%d bytes, %v", len(got), err)
			_ = c.Close()
		}))
		c := dial(t, addr)
		if _, err := c.Write(long); err != nil {
			t.Fatal(err)
		}
		_ = c.CloseWrite()
		got, err := io.ReadAll(c)
		if want := fmt.Sprintf("%d bytes, <nil>", len(long)); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	})
	t.Run("by the server", func(t *testing.T) {
		came := make(chan string, 1)
		addr, _, _ := chain(t, serve(t, func(c *net.TCPConn) {
			_, _ = c.Write(long)
			_ = c.CloseWrite()
			got, err := io.ReadAll(c)
			came <- fmt.Sprintf("%s, %v", got, err)
		}))
		c := dial(t, addr)
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, long) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		fmt.Fprint(c, "thanks")
		_ = c.CloseWrite()
		if got := <-came; got != "thanks, <nil>" {
			t.Error(got)
		}
	})
}

// A connection that cannot be passed on is reset, and the reason is told.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // nobody listens there now
	addr, failures, _ := chain(t, l.Addr().String())
	c, err := net.Dial("tcp", addr)
	if err == nil { // else the reset was there first
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v, want ECONNRESET", err)
	}
	if err := <-failures; !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, want ECONNREFUSED", err)
	}
}

// A dial whose client is gone ends, and nobody is told of it; that of a client which waits goes on,
// also if it has ended its half.
func TestPass_WhileItDials(t *testing.T) {
	for name, gone := range map[string]bool{"gone": true, "waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accepted, dials, ended := make(chan *net.TCPConn, 1), make(chan error, 1), make(chan bool)
			client := dial(t, serve(t, func(c *net.TCPConn) { accepted <- c }))
			f := &forwarder{
				failed: func(_ net.Addr, err error) { t.Errorf("it was told: %v", err) },
				dial: func(ctx context.Context) (net.Conn, error) { // of a machine that is off
					<-ctx.Done()
					dials <- ctx.Err()
					return nil, ctx.Err()
				},
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { f.pass(ctx, <-accepted); close(ended) }()
			_ = client.CloseWrite()
			if gone {
				_ = client.SetLinger(0)
				_ = client.Close()
			}
			select {
			case <-dials:
				if !gone {
					t.Error("the dial of a client that waits has ended")
				}
			case <-time.After(looks(gone)):
				if gone {
					t.Error("the dial goes on")
				}
			}
			cancel()
			<-ended
		})
	}
}

// What the server cuts off is cut off for the client, which does not take a part for all of it; and
// what the client cuts off for the server.
func TestReset(t *testing.T) {
	ends := make(chan error, 1)
	addr, _, _ := chain(t, serve(t, func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 4))
		fmt.Fprint(c, "a part")
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			ends <- err
			return
		}
		_ = c.SetLinger(0)
		_ = c.Close()
	}))
	part := make([]byte, len("a part"))
	for _, who := range []string{"server", "client"} {
		c := dial(t, addr)
		fmt.Fprint(c, "ping")
		if _, err := io.ReadFull(c, part); err != nil {
			t.Fatal(err)
		}
		if who == "server" {
			fmt.Fprint(c, "x")
			if n, err := c.Read(part); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the client: %d, %v, want ECONNRESET", n, err)
			}
			continue
		}
		_ = c.SetLinger(0)
		_ = c.Close()
		if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server: %v, want ECONNRESET", err)
		}
	}
}

// What the client cuts off is cut off for a server that has stopped reading, too.
func TestReset_WhileTheServerReadsNothing(t *testing.T) {
	servers := make(chan *net.TCPConn, 1)
	addr, _, _ := chain(t, serve(t, func(c *net.TCPConn) { servers <- c }))
	c := dial(t, addr)
	server := <-servers
	defer server.Close()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // by then nothing goes any more
	for {
		if _, err := c.Write(long); err != nil {
			break
		}
	}
	_ = c.SetLinger(0)
	_ = c.Close()
	isReset(t, server)
}

// isReset waits until a connection that nobody reads was reset.
func isReset(t *testing.T, c net.Conn) {
	t.Helper()
	const patience = time.Minute
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, err := c.Write(nil)
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) { // EPIPE: behind the end of a half
			break
		}
		if time.Since(begun) > patience {
			t.Fatalf("the connection is there after %v: %v", patience, err)
		}
	}
}

// looks is how long to wait for what a look at a connection ends, or does not.
func looks(ends bool) time.Duration {
	if ends {
		return time.Minute // far longer than the looks take
	}
	return 5 * lookAfter
}

// endNoted is a destination that tells when all has been passed on to it, and the end behind that.
type endNoted struct {
	*net.TCPConn
	passed chan<- struct{}
}

func (c *endNoted) CloseWrite() error {
	defer close(c.passed)
	return c.TCPConn.CloseWrite()
}

// A connection whose one half has ended is not kept where the end of that half is gone, though the
// other one has nothing to say: what it has sent arrives all the same.
func TestPass_BehindAHalfClose(t *testing.T) {
	for name, dropped := range map[string]bool{"reset": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accepted, servers := make(chan *net.TCPConn, 1), make(chan *net.TCPConn, 1)
			client := dial(t, serve(t, func(c *net.TCPConn) { accepted <- c }))
			server := serve(t, func(c *net.TCPConn) { servers <- c })
			passed := make(chan struct{})
			f := &forwarder{dial: func(ctx context.Context) (net.Conn, error) {
				c, err := new(net.Dialer).DialContext(ctx, "tcp", server)
				if err != nil {
					return nil, err
				}
				return &endNoted{c.(*net.TCPConn), passed}, nil
			}}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { f.pass(ctx, <-accepted); close(ended) }()
			s := <-servers
			defer s.Close()
			if _, err := client.Write(long[:100_000]); err != nil {
				t.Fatal(err)
			}
			_ = client.CloseWrite()
			<-passed
			if dropped {
				_ = client.SetLinger(0)
				_ = client.Close()
			}
			select {
			case <-ended:
			case <-time.After(looks(dropped)):
			}
			select {
			case <-ended:
				if !dropped {
					t.Error("a connection ended whose client waits")
				}
			default:
				if dropped {
					t.Error("the connection is kept")
				}
			}
			if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, long[:100_000]) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			cancel()
			<-ended
		})
	}
}

// What a program of rawnet cuts off behind its half's end is cut off for a server that says nothing.
func TestReset_BehindAHalfClose(t *testing.T) {
	nets := open(t)
	servers := make(chan *net.TCPConn, 1)
	server := serve(t, func(c *net.TCPConn) { servers <- c })
	l, err := nets[1].Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.serve(ctx, l) }()
	defer func() { cancel(); <-ended }()
	dialed, err := nets[0].Dial(rawnet.Network, "1:server")
	if err != nil {
		t.Fatal(err)
	}
	c := dialed.(*rawnet.Conn)
	_ = c.CloseWrite()
	s := <-servers
	defer s.Close()
	if got, err := io.ReadAll(s); len(got) > 0 || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	_ = c.SetLinger(0)
	_ = c.Close()
	isReset(t, s)
}

// end is an end of a connection whose Write fails.
type end struct {
	net.Conn
	err    error
	writes int
}

func (e *end) Write([]byte) (int, error) {
	e.writes++
	if e.writes > 10 {
		return 0, errors.New("the write goes on")
	}
	return 0, e.err
}

func (e *end) SetWriteDeadline(time.Time) error { return nil }

// A source that is gone without a reset, as its machine is off or out of reach, is missed, too, while
// the destination takes nothing; but not one whose other half has ended, or has its own deadline.
func TestLook(t *testing.T) {
	for _, c := range []struct {
		err   error
		looks int
	}{
		{syscall.ECONNRESET, 1},
		{syscall.ETIMEDOUT, 1},
		{syscall.EHOSTUNREACH, 1},
		{syscall.EPIPE, 10},
		{os.ErrDeadlineExceeded, 10},
		{nil, 10},
	} {
		to, from := &end{err: os.ErrDeadlineExceeded}, &end{err: c.err}
		_, err := (&watchful{to, from}).Write([]byte("x"))
		if from.writes != c.looks || c.looks == 1 && !errors.Is(err, c.err) {
			t.Errorf("a source that says %v: %v after %d looks, want %d", c.err, err, from.writes, c.looks)
		}
	}
}

// The end of the proxies resets the connections: what has come is not all.
func TestEnd(t *testing.T) {
	addr, _, stop := chain(t, serve(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) }))
	c := dial(t, addr)
	fmt.Fprint(c, "x")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stop()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d, %v, want ECONNRESET", n, err)
	}
}

// A web server and its clients know nothing of the proxies, many at a time.
func TestProgramsThatKnowNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		_, _ = w.Write(bytes.ToUpper(got))
	}))
	t.Cleanup(server.Close)
	addr, _, _ := chain(t, strings.TrimPrefix(server.URL, "http://"))
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	const clients = 20
	failed := make(chan error, clients)
	for k := range clients {
		go func() {
			sent := strings.Repeat(string(rune('a'+k)), 10_000)
			answer, err := client.Post("http://"+addr, "text/plain", strings.NewReader(sent))
			if err == nil {
				var got []byte
				got, err = io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if string(got) != strings.ToUpper(sent) {
					err = fmt.Errorf("%d bytes, %w", len(got), err)
				}
			}
			failed <- err
		}()
	}
	for range clients {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}
