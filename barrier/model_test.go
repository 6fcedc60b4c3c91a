package barrier_test

import (
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

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mcd"
)

var (
	modelSeeds = flag.Int("model.seeds", 20, "TestModel: how many programs")
	modelSeed  = flag.Uint64("model.seed", 0, "TestModel: the first seed; 0: random")
)

const (
	modelTimeout = time.Second // of peers
	modelRounds  = 8           // of each group, before its members are done
	// modelLimit is longer than any wait of a program whose members all go on: each of its nodes may
	// be found out by itself, while others are late by several timeouts.
	modelLimit = 2 * time.Minute
)

// model is a random program: nodes meet in barriers of all, of masks and of a second goroutine's
// number, while some stand still, die, leave and begin anew, and paths are cut. Who gets ErrNodeDown
// goes on with the survivors; who is excluded, or is done, leaves.
type model struct {
	t     *testing.T
	seed  uint64
	size  int
	cfg   barrier.GroupConfig
	nodes *lives.Nodes
	begun time.Time

	mu      sync.Mutex // guards what follows
	touched []bool     // by node: others may have had a reason to take it for gone
	entered map[string]map[int]bool
	decided map[string][]decision // by group
	ends    []func()              // of the present lives
}

// decision is what a life was told in a barrier of all.
type decision struct {
	node, life int
	down       []mcd.NodeID
}

// Every wait ends in a bound; nobody leaves a barrier before all have entered it; who is named gone
// was not to be heard by somebody for some time, or has left; and who decide differently name each
// other.
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
	size := 2 + rng.IntN(5)
	n, err := lives.New(size, lives.Config{Seed: seed, Loss: []float64{0, 0, 0.05}[rng.IntN(3)]})
	if err != nil {
		t.Fatal(err)
	}
	m := &model{
		t: t, seed: seed, size: size, nodes: n, touched: make([]bool, size), entered: map[string]map[int]bool{},
		decided: map[string][]decision{}, ends: make([]func(), size), begun: time.Now(),
	}
	m.cfg = barrier.GroupConfig{PeerTimeout: modelTimeout, Algorithm: parse(t, algorithms[rng.IntN(len(algorithms))])}
	var all sync.WaitGroup
	for k := range size {
		all.Go(func() { m.node(k) })
	}
	all.Go(func() { m.disturb(rand.New(rand.NewPCG(seed, 1))) })
	all.Wait()
}

// fail says what is wrong, when, and how to repeat it.
func (m *model) fail(format string, args ...any) {
	m.t.Errorf("go test ./barrier -run 'TestModel$' -model.seeds 1 -model.seed %d: after %v: %s",
		m.seed, time.Since(m.begun), fmt.Sprintf(format, args...))
}

func (m *model) touch(k ...int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range k {
		m.touched[k] = true
	}
}

func (m *model) touchAll() {
	for k := range m.size {
		m.touch(k)
	}
}

// disturb does what befalls nodes and paths, for a while.
func (m *model) disturb(rng *rand.Rand) {
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	var later sync.WaitGroup
	defer later.Wait()
	log := func(format string, args ...any) {
		m.t.Logf("%v: %s", time.Since(m.begun), fmt.Sprintf(format, args...))
	}
	for range rng.IntN(5) {
		time.Sleep(between(0, 3*modelTimeout))
		one := rng.IntN(m.size)
		two := (one + 1 + rng.IntN(m.size-1)) % m.size
		for range rng.IntN(2) + 1 {
			k, other := one, two
			switch what := rng.IntN(6); what {
			case 0, 1: // it stands still
				still := between(modelTimeout/10, modelTimeout/2)
				if what == 1 {
					still = between(modelTimeout/2, 4*modelTimeout)
					m.touchAll() // its timers go on: it may take others for gone, and say so
				}
				log("node %d stands still for %v", k, still)
				m.nodes.Still(k, true)
				later.Go(func() { time.Sleep(still); m.nodes.Still(k, false) })
			case 2: // it dies
				log("node %d dies", k)
				m.touch(k)
				m.mu.Lock()
				end := m.ends[k]
				m.mu.Unlock()
				if end != nil {
					end()
				}
			case 3, 4: // a path is cut, or both ways
				m.touch(k, other)
				m.nodes.Cut(k, other, true)
				m.nodes.Cut(other, k, what == 4)
				d := between(modelTimeout/2, 6*modelTimeout)
				log("node %d is cut off from %d for %v, both ways %t", k, other, d, what == 4)
				later.Go(func() {
					time.Sleep(d)
					m.nodes.Cut(k, other, false)
					m.nodes.Cut(other, k, false)
				})
			case 5: // all hear it no more
				m.touchAll()
				for j := range m.size {
					m.nodes.Cut(k, j, true)
				}
				d := between(modelTimeout/2, 6*modelTimeout)
				log("nobody hears node %d for %v", k, d)
				later.Go(func() {
					time.Sleep(d)
					for j := range m.size {
						m.nodes.Cut(k, j, false)
					}
				})
			}
			one, two = two, one
		}
	}
}

// node lives, and begins anew if it dies, at times.
func (m *model) node(k int) {
	rng := rand.New(rand.NewPCG(m.seed, 100+uint64(k)))
	for life := range 3 {
		ep, err := m.nodes.Begin(k)
		if err != nil {
			m.t.Error(err)
			return
		}
		ctx, die := context.WithCancel(context.Background())
		m.mu.Lock()
		m.ends[k] = func() { m.nodes.Kill(k); die() }
		m.mu.Unlock()
		s := service(m.t, ep, barrier.Config{})
		m.live(ctx, k, life, s, rng)
		m.touch(k) // it leaves
		died := ctx.Err() != nil
		if !died {
			_ = s.Close()
		}
		m.mu.Lock()
		m.ends[k] = nil
		m.mu.Unlock()
		m.nodes.Kill(k)
		die()
		_ = ep.Close()
		_ = s.Close()
		if !died || rng.IntN(2) == 0 {
			return
		}
		time.Sleep(time.Duration(rng.Int64N(int64(3 * modelTimeout))))
	}
}

// live is one life of a node: groups of survivors, one after the other.
func (m *model) live(ctx context.Context, k, life int, s *barrier.Service, rng *rand.Rand) {
	g, err := s.Group(m.cfg)
	name := ""
	var closing sync.WaitGroup
	defer closing.Wait()
	for err == nil && g != nil {
		var beside sync.WaitGroup
		beside.Go(func() { m.beside(ctx, k, life, g, name) })
		down := m.rounds(ctx, k, life, g, name, rng)
		late := time.Duration(rng.IntN(2)) * time.Duration(rng.Int64N(int64(4*modelTimeout)))
		var rest *barrier.Group
		if down != nil && !down.Excluded {
			if rest, err = g.Without(); err != nil && !errors.Is(err, barrier.ErrExcluded) {
				m.fail("node %d, without %v: %v", k, down.Nodes, err)
			}
			name = fmt.Sprintf("%s without %v", name, down.Nodes)
		}
		m.touch(k) // it leaves a group that others may be in
		if rest == nil {
			_ = g.Close()
		} else { // in the end: others may wait for this one in a mask
			former := g
			closing.Go(func() { time.Sleep(late); _ = former.Close() })
		}
		beside.Wait()
		g = rest
	}
}

// beside is a second goroutine, with a number of its own.
func (m *model) beside(ctx context.Context, k, life int, g *barrier.Group, name string) {
	rng := rand.New(rand.NewPCG(m.seed, 1000+uint64(10*k+life)))
	for round := range 2 * modelRounds {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(modelTimeout/10)))
		o := barrier.Options{Number: 1}
		if _, end := m.barrier(ctx, k, g, o, fmt.Sprintf("%s, beside, %d", name, round), g.Members(), brief(rng)); end {
			return
		}
	}
}

// rounds goes through the barriers of a group. It returns who is down, or nil if it is done.
func (m *model) rounds(
	ctx context.Context, k, life int, g *barrier.Group, name string, rng *rand.Rand,
) *barrier.NodeDownError {
	same := rand.New(rand.NewPCG(m.seed, uint64(len(name))+uint64(g.Size())<<32)) // what all members choose
	members := g.Members()
	for round := range modelRounds {
		wait := rng.ExpFloat64() * float64(modelTimeout/5)
		if rng.IntN(10) == 0 {
			wait *= 10
		}
		select {
		case <-time.After(time.Duration(wait)):
		case <-ctx.Done():
			return nil
		}
		what := fmt.Sprintf("%s, %d", name, round)
		o := barrier.Options{}
		in := members
		if same.IntN(4) == 0 {
			in = nil
			for _, n := range members {
				if same.IntN(2) == 0 {
					in = append(in, n)
				}
			}
			if !slices.Contains(in, mcd.NodeID(k)) {
				continue
			}
			o.Members = barrier.MaskOf(in...)
		}
		down, end := m.barrier(ctx, k, g, o, what, in, brief(rng))
		if down != nil && o.Members.IsZero() {
			if !down.Excluded && life == 0 { // those that begin anew make the group anew
				m.decide(name, k, life, down)
			}
			return down
		}
		if end && down == nil {
			return nil
		}
	}
	return nil
}

// brief returns for how long a barrier is waited for at first: mostly until it has ended.
func brief(rng *rand.Rand) time.Duration {
	if rng.IntN(3) == 0 {
		return time.Duration(rng.Int64N(int64(2 * modelTimeout)))
	}
	return modelLimit
}

// within is a barrier whose wait ends with its context after some time.
func within(ctx context.Context, most time.Duration, g *barrier.Group, o barrier.Options) error {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return g.BarrierWith(limited, o)
}

// barrier is one barrier, in a brief wait and a long one. end says that no other one follows.
func (m *model) barrier(
	ctx context.Context, k int, g *barrier.Group, o barrier.Options, what string, in []mcd.NodeID, brief time.Duration,
) (down *barrier.NodeDownError, end bool) {
	m.mu.Lock()
	if m.entered[what] == nil {
		m.entered[what] = map[int]bool{}
	}
	m.entered[what][k] = true
	m.mu.Unlock()
	err := within(ctx, brief, g, o)
	if errors.Is(err, context.DeadlineExceeded) { // the next one resumes it
		err = within(ctx, modelLimit, g, o)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch down, is := errors.AsType[*barrier.NodeDownError](err); {
	case err == nil:
		for _, n := range in {
			if !m.entered[what][int(n)] {
				m.fail("node %d has left barrier%q before node %d has entered", k, what, n)
			}
		}
		return nil, false
	case ctx.Err() != nil, errors.Is(err, barrier.ErrClosed):
		return nil, true
	case is:
		for i, n := range down.Nodes {
			if !m.touched[n] {
				m.fail("node %d, barrier%q: %v, and node %d was there (%v)", k, what, err, n, down.Reasons[i])
			}
		}
		return down, true
	default:
		m.fail("node %d, barrier%q of %v: %v", k, what, in, err)
		return nil, true
	}
}

// decide compares with what others were told.
func (m *model) decide(name string, k, life int, down *barrier.NodeDownError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.decided[name] {
		apart := slices.Contains(d.down, mcd.NodeID(k)) || slices.Contains(down.Nodes, mcd.NodeID(d.node)) || d.node == k
		if !apart && !slices.Equal(d.down, down.Nodes) {
			m.fail("group%q: node %d was told %v, node %d %v", name, k, down.Nodes, d.node, d.down)
		}
	}
	m.decided[name] = append(m.decided[name], decision{k, life, down.Nodes})
}
