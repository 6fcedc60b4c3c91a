package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
)

var (
	modelSeeds = flag.Int("model.seeds", 10, "TestModel: how many programs")
	modelSeed  = flag.Uint64("model.seed", 0, "TestModel: the first seed; 0: random")
)

const (
	modelTimeout = time.Second // of peers
	modelCallers = 3           // goroutines of each node
	modelCalls   = 12          // of each
	// modelLimit is longer than a call takes whose handler returns, or whose node is down; modelClose
	// is longer than a Close: two timeouts for responses, two for what is confirmed, one for goodbyes.
	modelLimit = 20 * time.Second
	modelClose = 6 * modelTimeout
)

// model is a random program: nodes call each other, with short and long records, and handlers that
// take their time, while some stand still, die, close in the middle and begin anew, and paths are
// cut.
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
	ran     map[string]int
}

// Every call ends in a bound, with its own response or an error that names its node, which was not
// down if it was heard all the time; its handler runs once at most; and Close ends.
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
		t: t, seed: seed, size: size, nodes: n, begun: time.Now(), touched: make([]time.Time, size), gone: make([]bool, size),
		ends: make([]func(), size), ran: map[string]int{},
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
	m.t.Errorf("go test ./rpc -run 'TestModel$' -model.seeds 1 -model.seed %d: after %v: %s",
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
				for k := range m.size {
					m.touch(d, k) // its timers go on, so it may take others for down
				}
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
		d, err := rpc.Open(ep, rpc.Config{PeerTimeout: modelTimeout, Concurrency: 1 + rng.IntN(4), Backlog: 1 + rng.IntN(8)})
		must(m.t, err)
		for _, inline := range []bool{false, true} {
			_, err := d.Serve(fmt.Sprint("echo", inline), rpc.ServerConfig{Handler: m.serve, Inline: inline})
			must(m.t, err)
		}
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
		var callers sync.WaitGroup
		for c := range modelCallers {
			callers.Go(func() { m.call(ctx, k, life, c, d) })
		}
		calling := make(chan struct{})
		go func() { callers.Wait(); close(calling) }()
		select {
		case <-calling:
		case <-ctx.Done(): // Close comes in the middle
		}
		done := ctx.Err() == nil
		m.setAlive(k, false) // it leaves
		m.mu.Lock()
		m.ends[k] = nil
		m.mu.Unlock()
		begun := time.Now()
		_ = d.Close()
		if took := time.Since(begun); took > modelClose {
			m.fail("node %d: Close took %v", k, took)
		}
		end()
		callers.Wait()
		m.nodes.Kill(k)
		_ = ep.Close()
		if done || rng.IntN(3) == 0 {
			return
		}
		time.Sleep(time.Duration(rng.Int64N(int64(2 * modelTimeout))))
	}
}

// serve echoes a request, of which the first byte says for how many tenths of a second it takes.
func (m *model) serve(ctx context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
	name, _, _ := bytes.Cut(req[1:], []byte{0})
	m.mu.Lock()
	m.ran[string(name)]++
	n := m.ran[string(name)]
	m.mu.Unlock()
	if n > 1 {
		m.fail("call %s: its handler runs %d times", name, n)
	}
	if tenths := req[0]; tenths > 0 {
		select {
		case <-time.After(time.Duration(tenths) * modelTimeout / 10):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return append(resp, req...), nil
}

// call calls other nodes.
func (m *model) call(ctx context.Context, k, life, caller int, d *rpc.Domain) {
	rng := rand.New(rand.NewPCG(m.seed, uint64(1000+100*k+10*life+caller)))
	for i := range modelCalls {
		time.Sleep(time.Duration(rng.ExpFloat64()*float64(modelTimeout/5)) + time.Duration(rng.IntN(4)/3)*4*modelTimeout)
		if ctx.Err() != nil {
			return
		}
		to := (k + 1 + rng.IntN(m.size-1)) % m.size
		req := fmt.Appendf([]byte{0}, "%d.%d.%d.%d\x00", k, life, caller, i)
		req = append(req, make([]byte, rng.IntN(3)*rng.IntN(40_000))...)
		inline := rng.IntN(3) == 0
		if !inline && rng.IntN(3) == 0 {
			req[0] = byte(rng.IntN(40))
		}
		most := modelLimit
		if rng.IntN(4) == 0 {
			most = time.Duration(rng.Int64N(int64(modelTimeout)))
		}
		begun := time.Now()
		limited, cancel := context.WithTimeout(context.Background(), most)
		resp, err := d.Call(limited, mcd.NodeID(to), fmt.Sprint("echo", inline), req)
		cancel()
		down, isDown := errors.AsType[*memfifo.PeerDownError](err)
		switch {
		case err == nil && !bytes.Equal(resp, req):
			m.fail("node %d: the response of node %d to call %d.%d is another one's", k, to, caller, i)
		case err == nil, errors.Is(err, rpc.ErrOverloaded), most < modelLimit && errors.Is(err, context.DeadlineExceeded):
		case errors.Is(err, rpc.ErrClosed), errors.Is(err, rpc.ErrNoService):
			if !m.isTouched(begun, k, to) {
				m.fail("node %d: call of node %d: %v", k, to, err)
			}
		case isDown:
			if int(down.Node) != to || !m.isTouched(begun, k, to) {
				m.fail("node %d: call of node %d: %v, and it was there", k, to, err)
			}
		default:
			m.fail("node %d: call %d.%d of node %d: %v", k, caller, i, to, err)
		}
	}
}
