package rawnet_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
)

var (
	modelSeeds = flag.Int("model.seeds", 4, "TestModel: how many programs")
	modelSeed  = flag.Uint64("model.seed", 0, "TestModel: the first seed; 0: random")
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
type model struct {
	t     *testing.T
	seed  uint64
	size  int
	nodes *lives.Nodes
	begun time.Time

	mu      sync.Mutex  // guards what follows
	touched []time.Time // by node: until then others may have a reason to take it for down
	gone    []bool      // by node: it does not live
	ends    []func()    // of the present lives
}

// Every dial, Read, Write and Close ends in a bound: a connection echoes all bytes, once and in order,
// or ends with an error, which it does not have between nodes that hear each other all the time.
func TestModel(t *testing.T) {
	seed, seeds := *modelSeed, *modelSeeds
	if seed == 0 {
		seed = rand.Uint64()
	}
	if testing.Short() {
		seeds = min(seeds, 2)
	}
	for range seeds {
		synctest.Test(t, func(t *testing.T) { runModel(t, seed) }) // which ends here if it fails
		seed++
	}
}

func runModel(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	size := 2 + rng.IntN(3)
	n, err := lives.New(size, lives.Config{Seed: seed, Loss: []float64{0, 0, 0.05}[rng.IntN(3)]})
	must(t, err)
	m := &model{
		t: t, seed: seed, size: size, nodes: n, begun: time.Now(),
		touched: make([]time.Time, size), gone: make([]bool, size), ends: make([]func(), size),
	}
	var all sync.WaitGroup
	for k := range size {
		all.Go(func() { m.node(k) })
	}
	all.Go(func() { m.disturb(rand.New(rand.NewPCG(seed, 1))) })
	all.Wait()
}

// fail says what is wrong, when, and how to repeat it.
func (m *model) fail(format string, args ...any) {
	m.t.Errorf("go test ./rawnet -run 'TestModel$' -model.seeds 1 -model.seed %d: after %v: %s",
		m.seed, time.Since(m.begun), fmt.Sprintf(format, args...))
}

// touch says that something befalls nodes for a while: isTouched excuses what begins before it is
// over, and some timeouts later.
func (m *model) touch(d time.Duration, k ...int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range k {
		if until := time.Now().Add(d + 3*modelTimeout); until.After(m.touched[k]) {
			m.touched[k] = until
		}
	}
}

// setAlive says whether a node lives from now on.
func (m *model) setAlive(k int, alive bool) {
	m.touch(0, k)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[k] = !alive
}

// isTouched reports whether what went wrong between two nodes, and began at some time, has a reason.
func (m *model) isTouched(begun time.Time, a, b int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[a] || m.gone[b] || m.touched[a].After(begun) || m.touched[b].After(begun)
}

// disturb does what befalls nodes and paths, for a while.
func (m *model) disturb(rng *rand.Rand) {
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	log := func(format string, args ...any) {
		m.t.Logf("%v: %s", time.Since(m.begun), fmt.Sprintf(format, args...))
	}
	var later sync.WaitGroup
	defer later.Wait()
	for range rng.IntN(6) {
		time.Sleep(between(0, 2*modelTimeout))
		k := rng.IntN(m.size)
		other := (k + 1 + rng.IntN(m.size-1)) % m.size
		d := between(modelTimeout/2, 6*modelTimeout)
		switch what := rng.IntN(5); what {
		case 0, 1: // it stands still
			if what == 0 {
				d /= 12
			} else {
				m.touch(d, k)
			}
			log("node %d stands still for %v", k, d)
			m.nodes.Still(k, true)
			later.Go(func() { time.Sleep(d); m.nodes.Still(k, false) })
		case 2: // it ends, with a word or without
			m.setAlive(k, false)
			m.mu.Lock()
			end := m.ends[k]
			m.mu.Unlock()
			if end != nil {
				log("node %d ends", k)
				end()
			}
		case 3, 4: // a path is cut, or both ways
			log("node %d is cut off from %d for %v, both ways %t", k, other, d, what == 4)
			m.touch(d, k, other)
			m.nodes.Cut(k, other, true)
			m.nodes.Cut(other, k, what == 4)
			later.Go(func() {
				time.Sleep(d)
				m.nodes.Cut(k, other, false)
				m.nodes.Cut(other, k, false)
			})
		}
	}
}

// node lives, and begins anew if it ends before it is done, at times.
func (m *model) node(k int) {
	rng := rand.New(rand.NewPCG(m.seed, 100+uint64(k)))
	for life := range 3 {
		ep, err := m.nodes.Begin(k)
		must(m.t, err)
		n, err := rawnet.Open(ep, rawnet.Config{
			PeerTimeout: modelTimeout, Window: rawnet.MinWindow << rng.IntN(5), Backlog: 1 + rng.IntN(4),
		})
		must(m.t, err)
		l, err := n.Listen("echo")
		must(m.t, err)
		m.setAlive(k, true)
		ctx, end := context.WithCancel(context.Background())
		kills := rng.IntN(2) == 0
		m.mu.Lock()
		m.ends[k] = func() {
			if kills {
				m.nodes.Kill(k)
			}
			end()
		}
		m.mu.Unlock()
		var serving, dialing sync.WaitGroup
		serving.Go(func() { m.serve(k, life, l, &serving) })
		for c := range modelDialers {
			dialing.Go(func() { m.dial(ctx, k, life, c, n) })
		}
		done := make(chan struct{})
		go func() { dialing.Wait(); close(done) }()
		select {
		case <-done:
		case <-ctx.Done(): // Close comes in the middle
		}
		ended := ctx.Err() != nil
		m.setAlive(k, false) // it leaves
		m.mu.Lock()
		m.ends[k] = nil
		m.mu.Unlock()
		begun := time.Now()
		_ = n.Close()
		if took := time.Since(begun); took > modelClose {
			m.fail("node %d: Close took %v", k, took)
		}
		end()
		dialing.Wait()
		serving.Wait()
		m.nodes.Kill(k)
		_ = ep.Close()
		if !ended || rng.IntN(3) == 0 {
			return
		}
		time.Sleep(time.Duration(rng.Int64N(int64(2 * modelTimeout))))
	}
}

// serve echoes what comes, slowly at times.
func (m *model) serve(k, life int, l *rawnet.Listener, serving *sync.WaitGroup) {
	rng := rand.New(rand.NewPCG(m.seed, uint64(5000+10*k+life)))
	for {
		c, err := l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				m.fail("node %d: accept: %v", k, err)
			}
			return
		}
		begun := time.Now()
		pause := time.Duration(rng.IntN(2)) * time.Duration(rng.Int64N(int64(modelTimeout)))
		serving.Go(func() {
			time.Sleep(pause)
			_, err := io.Copy(c, c)
			from := int(c.RemoteAddr().(rawnet.Addr).Node)
			if errors.Is(err, memfifo.ErrPeerDown) && !m.isTouched(begun, k, from) { // others: the dialer cuts it off
				m.fail("node %d echoes to node %d: %v", k, from, err)
			}
			_ = c.Close()
		})
	}
}

// dial dials other nodes.
func (m *model) dial(ctx context.Context, k, life, dialer int, n *rawnet.Net) {
	rng := rand.New(rand.NewPCG(m.seed, uint64(1000+100*k+10*life+dialer)))
	for range modelConns {
		time.Sleep(time.Duration(rng.ExpFloat64()*float64(modelTimeout/5)) + time.Duration(rng.IntN(4)/3)*4*modelTimeout)
		if ctx.Err() != nil {
			return
		}
		to := (k + 1 + rng.IntN(m.size-1)) % m.size
		begun := time.Now()
		c, err := n.Dial(rawnet.Network, fmt.Sprint(to, ":echo"))
		if took := time.Since(begun); took > 5*modelTimeout {
			m.fail("node %d: dial of node %d took %v: %v", k, to, took, err)
		}
		if err != nil {
			refused := errors.Is(err, syscall.ECONNREFUSED) // its backlog is full, or it has ended
			if !refused && !m.isTouched(begun, k, to) {
				m.fail("node %d: dial of node %d: %v", k, to, err)
			}
			if down, is := errors.AsType[*memfifo.PeerDownError](err); is && int(down.Node) != to {
				m.fail("node %d: dial of node %d: %v", k, to, err)
			}
			continue
		}
		m.echo(k, to, c, rng)
	}
}

// echo sends bytes, and compares what comes back, in two goroutines.
func (m *model) echo(k, to int, c net.Conn, rng *rand.Rand) {
	size := rng.IntN(3) * rng.IntN(300_000)
	slow := time.Duration(rng.IntN(2)) * modelTimeout / 20
	begun := time.Now()
	cuts := rng.IntN(6) == 0 // a third goroutine closes it in the middle
	if cuts {
		time.AfterFunc(time.Duration(rng.Int64N(int64(modelTimeout))), func() { _ = c.Close() })
	}
	must(m.t, c.SetDeadline(time.Now().Add(modelLimit)))
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
					m.fail("node %d: byte %d of node %d is another one", k, got+i, to)
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
		m.fail("node %d to %d: %d of %d bytes after %v: write %v, read %v", k, to, got, size, modelLimit, written, read)
	case got > size, !whole && !cuts && !m.isTouched(begun, k, to):
		m.fail("node %d to %d: %d of %d bytes: write %v, read %v", k, to, got, size, written, read)
	}
	_ = c.Close()
}
