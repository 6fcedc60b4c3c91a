package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	living "github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mcd"
)

var (
	modelSeeds = flag.Int("model.seeds", 20, "TestModel: how many programs")
	modelSeed  = flag.Uint64("model.seed", 0, "TestModel: the first seed; 0: random")
)

const (
	modelTimeout = time.Second // of peers
	modelRounds  = 6
	// modelLimit is longer than any wait where nodes that have failed close.
	modelLimit = time.Minute
)

// model is a random program: nodes exchange and gather, and ask each other from a second goroutine,
// while some stand still, die, close in the middle and begin anew, and paths are cut.
type model struct {
	t     *testing.T
	seed  uint64
	size  int
	nodes *living.Nodes
	begun time.Time

	mu      sync.Mutex // guards what follows
	touched []bool     // by node: others may have had a reason to miss it
	ends    []func()   // of the present lives
}

// Every wait of an Exchanger with a peer timeout ends in a bound, with the blobs of all, or an error
// that names those that are missing: nobody who was heard all the time.
func TestModel(t *testing.T) {
	seed, seeds := *modelSeed, *modelSeeds
	if seed == 0 {
		seed = rand.Uint64()
	}
	if testing.Short() {
		seeds = min(seeds, 5)
	}
	for range seeds {
		synctest.Test(t, func(t *testing.T) { runModel(t, seed) }) // which ends here if it fails
		seed++
	}
}

func runModel(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	size := 2 + rng.IntN(4)
	n, err := living.New(size, living.Config{Seed: seed, Loss: []float64{0, 0, 0.05}[rng.IntN(3)]})
	if err != nil {
		t.Fatal(err)
	}
	m := &model{
		t: t, seed: seed, size: size, nodes: n, begun: time.Now(), touched: make([]bool, size), ends: make([]func(), size),
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
	m.t.Errorf("go test ./cluster -run 'TestModel$' -model.seeds 1 -model.seed %d: after %v: %s",
		m.seed, time.Since(m.begun), fmt.Sprintf(format, args...))
}

func (m *model) touch(k ...int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range k {
		m.touched[k] = true
	}
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
	for range rng.IntN(5) {
		time.Sleep(between(0, 3*modelTimeout))
		k := rng.IntN(m.size)
		other := (k + 1 + rng.IntN(m.size-1)) % m.size
		d := between(modelTimeout/2, 6*modelTimeout)
		switch what := rng.IntN(5); what {
		case 0:
			d = between(modelTimeout/10, modelTimeout/2)
			fallthrough
		case 1: // it stands still
			if what == 1 {
				for k := range m.size {
					m.touch(k)
				}
			}
			log("node %d stands still for %v", k, d)
			m.nodes.Still(k, true)
			later.Go(func() { time.Sleep(d); m.nodes.Still(k, false) })
		case 2: // it ends, with a word or without
			m.touch(k)
			m.mu.Lock()
			end := m.ends[k]
			m.mu.Unlock()
			if end != nil {
				log("node %d ends", k)
				end()
			}
		case 3, 4: // a path is cut, or both ways
			log("node %d is cut off from %d for %v, both ways %t", k, other, d, what == 4)
			m.touch(k, other)
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
	for range 3 {
		ep, err := m.nodes.Begin(k)
		if err != nil {
			m.t.Error(err)
			return
		}
		x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{
			PeerTimeout: modelTimeout,
			Answer:      func(_ mcd.NodeID, request []byte) ([]byte, bool) { return slices.Clone(request), true },
		})
		if err != nil {
			m.t.Error(err)
			return
		}
		ctx, end := context.WithCancel(context.Background())
		kills := rng.IntN(2) == 0
		m.mu.Lock()
		m.ends[k] = func() {
			if kills {
				m.nodes.Kill(k)
				end()
			} else {
				go func() { _ = x.Close(); end() }()
			}
		}
		m.mu.Unlock()
		var beside sync.WaitGroup
		beside.Go(func() { m.ask(ctx, k, x) })
		m.rounds(ctx, k, x, rng)
		m.touch(k) // it leaves
		m.mu.Lock()
		m.ends[k] = nil
		m.mu.Unlock()
		done := ctx.Err() == nil
		m.bounded(k, "close", func() { _ = x.Close() })
		end()
		beside.Wait()
		m.nodes.Kill(k)
		_ = ep.Close()
		if done || rng.IntN(2) == 0 {
			return
		}
		time.Sleep(time.Duration(rng.Int64N(int64(2 * modelTimeout))))
	}
}

// bounded does what is to end without a context.
func (m *model) bounded(k int, what string, do func()) {
	begun := time.Now()
	do()
	if took := time.Since(begun); took > modelLimit {
		m.fail("node %d: %s took %v", k, what, took)
	}
}

// ask asks other nodes.
func (m *model) ask(ctx context.Context, k int, x *cluster.Exchanger) {
	rng := rand.New(rand.NewPCG(m.seed, 1000+uint64(k)))
	for range 2 * modelRounds {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(modelTimeout/10)))
		to := (k + 1 + rng.IntN(m.size-1)) % m.size
		request := []byte(fmt.Sprint(k, rng.Uint64()))
		answer, err := within(ctx, func(ctx context.Context) ([]byte, error) { return x.Ask(ctx, mcd.NodeID(to), request) })
		if !m.expected(ctx, k, fmt.Sprintf("ask %d", to), err) {
			return
		}
		if err == nil && !bytes.Equal(answer, request) {
			m.fail("node %d asked node %d %q, and was told %q", k, to, request, answer)
		}
	}
}

func within[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, modelLimit)
	defer cancel()
	return do(limited)
}

// expected reports whether a node goes on.
func (m *model) expected(ctx context.Context, k int, what string, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	missing, is := errors.AsType[*cluster.MissingError](err)
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil, errors.Is(err, mcd.ErrClosed), errors.Is(err, cluster.ErrRestart):
		return false
	case errors.Is(err, context.DeadlineExceeded), !is:
		m.fail("node %d: %s: %v", k, what, err)
		return false
	}
	for _, n := range missing.Nodes {
		if !m.touched[n] {
			m.fail("node %d: %s: %v, and node %d was there", k, what, err, n)
		}
	}
	return true
}

// rounds exchanges and gathers.
func (m *model) rounds(ctx context.Context, k int, x *cluster.Exchanger, rng *rand.Rand) {
	for round := range modelRounds {
		wait := rng.ExpFloat64() * float64(modelTimeout/5)
		if rng.IntN(10) == 0 {
			wait *= 10
		}
		select {
		case <-time.After(time.Duration(wait)):
		case <-ctx.Done():
			return
		}
		root := mcd.NodeID(round % m.size)
		got, err := within(ctx, func(ctx context.Context) ([][]byte, error) {
			if round%2 == 1 {
				return x.Gather(ctx, root, blob(round, k))
			}
			return x.Exchange(ctx, blob(round, k))
		})
		if !m.expected(ctx, k, fmt.Sprintf("round %d", round), err) || err != nil {
			return
		}
		for n, b := range got {
			if !bytes.Equal(b, blob(round, n)) {
				m.fail("node %d: round %d: %d bytes of node %d, want %d", k, round, len(b), n, len(blob(round, n)))
			}
		}
	}
}
