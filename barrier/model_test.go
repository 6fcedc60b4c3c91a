package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mcd"
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
	*lives.Program
	cfg barrier.GroupConfig

	mu      sync.Mutex // guards what follows
	entered map[string]map[int]bool
	decided map[string][]decision // by group
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
	programs := lives.Programs{Seeds: 60, Short: 5, MaxSize: 6, PeerTimeout: modelTimeout, Accuses: true}
	lives.Run(t, programs, func(p *lives.Program) {
		a := algorithms[p.Rand(2).IntN(len(algorithms))]
		m := &model{
			Program: p, cfg: barrier.GroupConfig{PeerTimeout: modelTimeout, Algorithm: parse(p.T, a)},
			entered: map[string]map[int]bool{}, decided: map[string][]decision{},
		}
		p.Go(m.node)
	})
}

// node lives, and begins anew if it dies, at times.
func (m *model) node(k int) {
	rng := m.Rand(100 + uint64(k))
	for life := range 3 {
		ep, err := m.Begin(k)
		if err != nil {
			m.T.Error(err)
			return
		}
		ctx, die := context.WithCancel(context.Background())
		m.Lives(k, func() { m.Kill(k); die() })
		s := service(m.T, ep, barrier.Config{})
		m.live(ctx, k, life, s, rng)
		m.Leaves(k)
		died := ctx.Err() != nil
		if !died {
			_ = s.Close()
		}
		m.Kill(k)
		die()
		_ = ep.Close()
		_ = s.Close()
		if !died || rng.IntN(2) == 0 {
			return
		}
		time.Sleep(lives.Between(rng, 0, 3*modelTimeout))
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
				m.Fail("node %d, without %v: %v", k, down.Nodes, err)
			}
		}
		m.Touch(0, k) // it leaves a group that others may be in
		if rest == nil {
			_ = g.Close()
		} else { // in the end: others may wait for this one in a mask
			name = fmt.Sprintf(" of %v", rest.Members()) // by whichever deaths these have come to it
			former := g
			closing.Go(func() { time.Sleep(late); _ = former.Close() })
		}
		beside.Wait()
		g = rest
	}
}

// beside is a second goroutine, with a number of its own.
func (m *model) beside(ctx context.Context, k, life int, g *barrier.Group, name string) {
	rng := m.Rand(1000 + uint64(10*k+life))
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
	same := m.Rand(uint64(len(name)) + uint64(g.Size())<<32) // what all members choose
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
				m.Fail("node %d has left barrier%q before node %d has entered", k, what, n)
			}
		}
		return nil, false
	case ctx.Err() != nil, errors.Is(err, barrier.ErrClosed):
		return nil, true
	case is:
		for i, n := range down.Nodes {
			if !m.IsTouched(int(n)) {
				m.Fail("node %d, barrier%q: %v, and node %d was there (%v)", k, what, err, n, down.Reasons[i])
			}
		}
		return down, true
	default:
		m.Fail("node %d, barrier%q of %v: %v", k, what, in, err)
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
			m.Fail("group%q: node %d was told %v, node %d %v", name, k, down.Nodes, d.node, d.down)
		}
	}
	m.decided[name] = append(m.decided[name], decision{k, life, down.Nodes})
}
