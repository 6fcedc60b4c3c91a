//go:build linux

package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/rawnet"
)

const (
	service    = "echo"
	briefMost  = 4 << 10 // bytes of most lives of a connection
	longMost   = 1 << 20 // of some: four windows
	longShare  = 256     // one in so many
	settleTime = 30 * time.Second
)

// connections is clients on all nodes: each dials another node's echo service, sends bytes,
// compares what comes back, closes the connection in one of some ways, and dials anew.
type connections struct {
	nets      [Nodes]*rawnet.Net
	listeners [Nodes]*rawnet.Listener
	serving   sync.WaitGroup
	clients   int
	resting   sync.RWMutex   // a client that does not hold it has a connection that is open and idle
	begun     sync.WaitGroup // the clients that have not rested yet
	over      atomic.Bool
	lives     atomic.Uint64
	bytes     atomic.Uint64
	reopened  uint64

	mu    sync.Mutex // guards wrong
	wrong []string
}

// Connections has so many clients, on all nodes, dial and close for a time. Samples are taken while
// all clients have an idle connection: then the goroutines are a known number, and the connections,
// too, and each listener makes room for another one of its name.
func Connections(ctx context.Context, length time.Duration, clients int) (o Outcome, err error) {
	s, err := openStage()
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	c := &connections{clients: clients}
	defer c.serving.Wait()
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.open(s); err != nil {
		return o, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.close() })() // ends all waits
	var workers []func(context.Context) error
	for i := range clients {
		c.begun.Add(1)
		workers = append(workers, func(ctx context.Context) error { return c.client(ctx, i) })
	}
	o, err = s.run(ctx, length, workers, c.measure, func() { c.over.Store(true) })
	if err == nil {
		c.settle(0, time.Now().Add(settleTime))
		err = c.close()
	}
	if err == nil { // the ports are free
		err = errors.Join(c.open(s), c.close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.Wrong = c.wrong
	o.Counts["connections of soaks"], o.Counts["bytes echoed in soaks"] = c.lives.Load(), c.bytes.Load()
	o.Counts["listeners reopened in soaks"] = c.reopened
	return o, err
}

// open opens connections on all nodes, and their services.
func (c *connections) open(s *stage) (err error) {
	for k := range c.nets {
		if c.nets[k], err = rawnet.Open(s.eps[k], rawnet.Config{PeerTimeout: peerTimeout}); err != nil {
			return err
		}
		if err = c.listen(k); err != nil {
			return err
		}
	}
	return nil
}

// close closes what is open. Further calls do nothing.
func (c *connections) close() error {
	var errs [Nodes]error
	var all sync.WaitGroup
	for k, n := range c.nets {
		if n != nil {
			all.Go(func() { errs[k] = n.Close() })
		}
	}
	all.Wait()
	return errors.Join(errs[:]...)
}

// listen serves a node's echoes, until the listener is closed.
func (c *connections) listen(k int) error {
	l, err := c.nets[k].Listen(service)
	if err != nil {
		return err
	}
	c.listeners[k] = l
	c.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			c.serving.Go(func() {
				_, err := io.Copy(conn, conn)
				// A client that closes before all has come back makes writes fail: EPIPE.
				if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, net.ErrClosed) {
					c.broken("echo: %v", err)
				}
				_ = conn.Close()
			})
		}
	})
	return nil
}

// client dials and closes until the time is over.
func (c *connections) client(ctx context.Context, i int) error {
	begun := sync.OnceFunc(c.begun.Done)
	defer begun()
	rng := rand.New(rand.NewPCG(uint64(i), 2))
	from := i % Nodes
	to := strconv.Itoa((from + 1 + i/Nodes%(Nodes-1)) % Nodes)
	var conn net.Conn
	for {
		c.resting.RLock()
		err := c.live(ctx, &conn, c.nets[from], to+":"+service, rng)
		c.resting.RUnlock()
		begun()
		if err != nil || conn == nil {
			return err
		}
	}
}

// live ends a client's connection, and begins the next one unless the time is over.
func (c *connections) live(ctx context.Context, conn *net.Conn, n *rawnet.Net, addr string, rng *rand.Rand) error {
	if *conn != nil {
		err := c.end(*conn, rng)
		if *conn = nil; err != nil {
			return fmt.Errorf("close a connection to %s: %w", addr, err)
		}
	}
	if c.over.Load() {
		return nil
	}
	next, err := n.DialContext(ctx, rawnet.Network, addr)
	if err != nil {
		return err
	}
	*conn = next
	size := 1 + rng.IntN(briefMost)
	if rng.IntN(longShare) == 0 {
		size = 1 + rng.IntN(longMost)
	}
	if err := c.exchange(next, c.lives.Add(1), size); err != nil {
		return fmt.Errorf("%d bytes to %s and back: %w", size, addr, err)
	}
	c.bytes.Add(uint64(size))
	return nil
}

// exchange sends bytes, and compares what comes back.
func (c *connections) exchange(conn net.Conn, number uint64, size int) error {
	sent, got := make([]byte, size), make([]byte, size)
	fill(sent, number)
	written := make(chan error, 1)
	write := func() { _, err := conn.Write(sent); written <- err }
	if size <= briefMost {
		write()
	} else {
		go write() // the echo waits for who reads; until written is read below
	}
	_, err := io.ReadFull(conn, got)
	if err != nil {
		_ = conn.Close()
	}
	if err = errors.Join(err, <-written); err == nil && !bytes.Equal(sent, got) {
		c.broken("%v: what came back is not what was sent", conn.LocalAddr())
	}
	return err
}

// end closes a connection in one of the ways that there are.
func (c *connections) end(conn net.Conn, rng *rand.Rand) (err error) {
	one := make([]byte, 1)
	switch rng.IntN(4) {
	case 0: // its half first
		if err = conn.(*rawnet.Conn).CloseWrite(); err == nil {
			if _, err = conn.Read(one); err == io.EOF { //nolint:errorlint // Read returns the very value
				err = nil
			}
		}
	case 1: // with an echo on its way
		_, err = conn.Write(make([]byte, briefMost))
	case 2: // with a deadline that has passed
		err = conn.SetReadDeadline(time.Now())
		if _, errRead := conn.Read(one); !errors.Is(errRead, os.ErrDeadlineExceeded) {
			c.broken("read behind its deadline: %v", errRead)
		}
	}
	return errors.Join(err, conn.Close())
}

// measure takes a sample while all clients rest.
func (c *connections) measure() Sample {
	c.begun.Wait()
	c.resting.Lock()
	defer c.resting.Unlock()
	c.settle(2*c.clients, time.Now().Add(settleTime))
	for k, l := range c.listeners {
		if err := errors.Join(l.Close(), c.listen(k)); err != nil {
			c.broken("node %d: reopen a listener: %v", k, err)
		}
		c.reopened++
	}
	return measure()
}

// settle waits until there are so many ends of connections: what a client has closed, its server
// still has for a moment.
func (c *connections) settle(ends int, limit time.Time) {
	for {
		there := 0
		for _, n := range c.nets {
			there += n.Counters().Conns
		}
		switch {
		case there == ends:
			return
		case time.Now().After(limit):
			c.broken("%d ends of connections (want %d)", there, ends)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// broken notes a broken promise: the first few.
func (c *connections) broken(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 10 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}
