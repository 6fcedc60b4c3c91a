package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cluster"
	living "github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mcd"
)

const (
	modelTimeout = time.Second // of peers
	modelRounds  = 6
	// modelLimit is longer than any wait where nodes that have failed close.
	modelLimit = time.Minute
)

// model is a random program: nodes exchange and gather, and ask each other from a second goroutine,
// while some stand still, die, close in the middle and begin anew, and paths are cut.
type model struct{ *living.Program }

// Every wait of an Exchanger with a peer timeout ends in a bound, with the blobs of all, or an error
// that names those that are missing: nobody who was heard all the time.
func TestModel(t *testing.T) {
	programs := living.Programs{Seeds: 400, Short: 5, MaxSize: 5, PeerTimeout: modelTimeout, Accuses: true, Mild: true}
	living.Run(t, programs, func(p *living.Program) { p.Go(model{p}.node) })
}

// node lives, and begins anew if it ends before it is done, at times.
func (m model) node(k int) {
	rng := m.Rand(100 + uint64(k))
	for range 3 {
		ep, err := m.Begin(k)
		if err != nil {
			m.T.Error(err)
			return
		}
		x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{
			PeerTimeout: modelTimeout,
			Answer:      func(_ mcd.NodeID, request []byte) ([]byte, bool) { return slices.Clone(request), true },
		})
		if err != nil {
			m.T.Error(err)
			return
		}
		ctx, end := context.WithCancel(context.Background())
		kills := rng.IntN(2) == 0
		m.Lives(k, func() {
			if kills {
				m.Kill(k)
				end()
			} else {
				go func() { _ = x.Close(); end() }()
			}
		})
		var beside sync.WaitGroup
		beside.Go(func() { m.ask(ctx, k, x) })
		m.rounds(ctx, k, x, rng)
		m.Leaves(k)
		done := ctx.Err() == nil
		m.Bounded(k, "Close", modelLimit, func() { _ = x.Close() })
		end()
		beside.Wait()
		m.Kill(k)
		_ = ep.Close()
		if done || rng.IntN(2) == 0 {
			return
		}
		time.Sleep(living.Between(rng, 0, 2*modelTimeout))
	}
}

// ask asks other nodes.
func (m model) ask(ctx context.Context, k int, x *cluster.Exchanger) {
	rng := m.Rand(1000 + uint64(k))
	for range 2 * modelRounds {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(modelTimeout/10)))
		to := (k + 1 + rng.IntN(m.Size-1)) % m.Size
		request := []byte(fmt.Sprint(k, rng.Uint64()))
		answer, err := within(ctx, func(ctx context.Context) ([]byte, error) { return x.Ask(ctx, mcd.NodeID(to), request) })
		if !m.expected(ctx, k, fmt.Sprintf("ask %d", to), err) {
			return
		}
		if err == nil && !bytes.Equal(answer, request) {
			m.Fail("node %d asked node %d %q, and was told %q", k, to, request, answer)
		}
	}
}

func within[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, modelLimit)
	defer cancel()
	return do(limited)
}

// expected reports whether a node goes on.
func (m model) expected(ctx context.Context, k int, what string, err error) bool {
	missing, is := errors.AsType[*cluster.MissingError](err)
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil, errors.Is(err, mcd.ErrClosed), errors.Is(err, cluster.ErrRestart):
		return false
	case errors.Is(err, context.DeadlineExceeded), !is:
		m.Fail("node %d: %s: %v", k, what, err)
		return false
	}
	for _, n := range missing.Nodes {
		if !m.IsTouched(int(n)) {
			m.Fail("node %d: %s: %v, and node %d was there", k, what, err, n)
		}
	}
	return true
}

// rounds exchanges and gathers.
func (m model) rounds(ctx context.Context, k int, x *cluster.Exchanger, rng *rand.Rand) {
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
		root := mcd.NodeID(round % m.Size)
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
				m.Fail("node %d: round %d: %d bytes of node %d, want %d", k, round, len(b), n, len(blob(round, n)))
			}
		}
	}
}
