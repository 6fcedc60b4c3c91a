package rawnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
)

const (
	modelTimeout = time.Second // of peers
	modelDialers = 3           // goroutines of each node
	modelConns   = 6           // of each
	// modelLimit is longer than a connection takes that echoes, or whose other end is down.
	modelLimit = 30 * time.Second
	// modelClose is longer than a Close: two timeouts for what is owed, two for what is confirmed, one
	// for goodbyes.
	modelClose = 6 * modelTimeout
)

// model is a random program: nodes dial each other, and echo what is sent, with readers that are slow,
// deadlines and second goroutines, while some stand still, die, close in the middle and begin anew,
// and paths are cut.
type model struct{ *lives.Program }

// Every dial, Read, Write and Close ends in a bound: a connection echoes all bytes, once and in order,
// or ends with an error, which it does not have between nodes that hear each other all the time.
func TestModel(t *testing.T) {
	programs := lives.Programs{Seeds: 20, Short: 2, MaxSize: 4, PeerTimeout: modelTimeout}
	lives.Run(t, programs, func(p *lives.Program) { p.Go(model{p}.node) })
}

// node lives, and begins anew if it ends before it is done, at times.
func (m model) node(k int) {
	rng := m.Rand(100 + uint64(k))
	for life := range 3 {
		ep, err := m.Begin(k)
		must(m.T, err)
		n, err := rawnet.Open(ep, rawnet.Config{
			PeerTimeout: modelTimeout, Window: rawnet.MinWindow << rng.IntN(5), Backlog: 1 + rng.IntN(4),
		})
		must(m.T, err)
		l, err := n.Listen("echo")
		must(m.T, err)
		ctx, end := context.WithCancel(context.Background())
		kills := rng.IntN(2) == 0
		m.Lives(k, func() {
			if kills {
				m.Kill(k)
			}
			end()
		})
		var serving, dialing sync.WaitGroup
		serving.Go(func() { m.serve(k, life, l, &serving) })
		for c := range modelDialers {
			dialing.Go(func() { m.dial(ctx, k, life, c, n) })
		}
		done := lives.Await(ctx, &dialing) // or Close comes in the middle
		m.Leaves(k)
		m.Bounded(k, "Close", modelClose, func() { _ = n.Close() })
		end()
		dialing.Wait()
		serving.Wait()
		m.Kill(k)
		_ = ep.Close()
		if done || rng.IntN(3) == 0 {
			return
		}
		time.Sleep(lives.Between(rng, 0, 2*modelTimeout))
	}
}

// serve echoes what comes, slowly at times.
func (m model) serve(k, life int, l *rawnet.Listener, serving *sync.WaitGroup) {
	rng := m.Rand(uint64(5000 + 10*k + life))
	for {
		c, err := l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				m.Fail("node %d: accept: %v", k, err)
			}
			return
		}
		begun := time.Now()
		pause := time.Duration(rng.IntN(2)) * time.Duration(rng.Int64N(int64(modelTimeout)))
		serving.Go(func() {
			time.Sleep(pause)
			_, err := io.Copy(c, c)
			from := int(c.RemoteAddr().(rawnet.Addr).Node)
			if errors.Is(err, memfifo.ErrPeerDown) && !m.IsExcused(begun, k, from) { // others: the dialer cuts it off
				m.Fail("node %d echoes to node %d: %v", k, from, err)
			}
			_ = c.Close()
		})
	}
}

// dial dials other nodes.
func (m model) dial(ctx context.Context, k, life, dialer int, n *rawnet.Net) {
	rng := m.Rand(uint64(1000 + 100*k + 10*life + dialer))
	for range modelConns {
		time.Sleep(time.Duration(rng.ExpFloat64()*float64(modelTimeout/5)) + time.Duration(rng.IntN(4)/3)*4*modelTimeout)
		if ctx.Err() != nil {
			return
		}
		to := (k + 1 + rng.IntN(m.Size-1)) % m.Size
		begun := time.Now()
		c, err := n.Dial(rawnet.Network, fmt.Sprint(to, ":echo"))
		if took := time.Since(begun); took > 5*modelTimeout {
			m.Fail("node %d: dial of node %d took %v: %v", k, to, took, err)
		}
		if err != nil {
			refused := errors.Is(err, syscall.ECONNREFUSED) // its backlog is full, or it has ended
			if !refused && !m.IsExcused(begun, k, to) {
				m.Fail("node %d: dial of node %d: %v", k, to, err)
			}
			if down, is := errors.AsType[*memfifo.PeerDownError](err); is && int(down.Node) != to {
				m.Fail("node %d: dial of node %d: %v", k, to, err)
			}
			continue
		}
		m.echo(k, to, c, rng)
	}
}

// echo sends bytes, and compares what comes back, in two goroutines.
func (m model) echo(k, to int, c net.Conn, rng *rand.Rand) {
	size := rng.IntN(3) * rng.IntN(300_000)
	slow := time.Duration(rng.IntN(2)) * modelTimeout / 20
	begun := time.Now()
	cuts := rng.IntN(6) == 0 // a third goroutine closes it in the middle
	if cuts {
		time.AfterFunc(time.Duration(rng.Int64N(int64(modelTimeout))), func() { _ = c.Close() })
	}
	must(m.T, c.SetDeadline(time.Now().Add(modelLimit)))
	var written, read error
	var got int
	var both sync.WaitGroup
	both.Go(func() {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(i * 7)
		}
		if _, written = c.Write(b); written == nil {
			written = c.(*rawnet.Conn).CloseWrite()
		}
	})
	both.Go(func() {
		b := make([]byte, 64<<10)
		for read == nil {
			var n int
			n, read = c.Read(b)
			for i := range n {
				if b[i] != byte((got+i)*7) {
					m.Fail("node %d: byte %d of node %d is another one", k, got+i, to)
					return
				}
			}
			got += n
			time.Sleep(slow)
		}
	})
	both.Wait()
	whole := written == nil && read == io.EOF && got == size //nolint:errorlint // Read returns the very value
	switch {
	case errors.Is(written, os.ErrDeadlineExceeded), errors.Is(read, os.ErrDeadlineExceeded):
		m.Fail("node %d to %d: %d of %d bytes after %v: write %v, read %v", k, to, got, size, modelLimit, written, read)
	case got > size, !whole && !cuts && !m.IsExcused(begun, k, to):
		m.Fail("node %d to %d: %d of %d bytes: write %v, read %v", k, to, got, size, written, read)
	}
	_ = c.Close()
}
