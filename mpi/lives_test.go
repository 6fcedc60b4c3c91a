package mpi_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mpi"
)

const (
	livesTimeout = time.Second // of peers
	livesSteps   = 8
	livesClose   = 6 * livesTimeout
	// livesLimit is longer than an operation takes: others come to it within a step of theirs, and
	// each of those ends by a death that some PeerTimeouts show.
	livesLimit = 2 * time.Minute
	// livesTries is more often than anything befalls the processes.
	livesTries = 40
)

// livesModel is a random program: processes do steps together, and go on with those that live when
// one fails, while some stand still, die, close in the middle and begin anew, and paths are cut.
type livesModel struct {
	*lives.Program
}

// Every operation ends in a bound. One that succeeds has the data of all processes of its
// communicator; one that fails has a reason, and names a process or says that it was revoked. Who
// is out is told so. Close ends.
func TestLives(t *testing.T) {
	programs := lives.Programs{Seeds: 30, Short: 2, MaxSize: 5, PeerTimeout: livesTimeout, Accuses: true}
	lives.Run(t, programs, func(p *lives.Program) {
		m := &livesModel{p}
		p.Go(m.node)
	})
}

// node lives, and begins anew if it ends before it is done, at times: the others have it for down.
func (m *livesModel) node(k int) {
	rng := m.Rand(100 + uint64(k))
	for range 2 {
		ep, err := m.Begin(k)
		must(m.T, err)
		w, err := mpi.Open(ep, mpi.Config{PeerTimeout: livesTimeout})
		must(m.T, err)
		ctx, end := context.WithCancel(context.Background())
		kills := rng.IntN(2) == 0
		m.Lives(k, func() {
			if kills {
				m.Kill(k)
			}
			end()
		})
		done := make(chan struct{})
		go func() { defer close(done); m.steps(ctx, k, w.Comm()) }()
		select {
		case <-done:
		case <-ctx.Done(): // Close comes in the middle
		}
		ended := ctx.Err() != nil
		m.Leaves(k)
		m.Bounded(k, "Close", livesClose, func() { _ = w.Close() })
		end()
		<-done
		m.Kill(k)
		_ = ep.Close()
		if !ended || rng.IntN(3) == 0 {
			return
		}
		time.Sleep(lives.Between(rng, 0, 2*livesTimeout))
	}
}

// steps does what all do, and goes on with those that live.
func (m *livesModel) steps(ctx context.Context, k int, c *mpi.Comm) {
	rng := m.Rand(uint64(1000 + k))
	for step, tries := 0, 0; step < livesSteps && ctx.Err() == nil; tries++ {
		time.Sleep(time.Duration(rng.ExpFloat64()*float64(livesTimeout/5)) + time.Duration(rng.IntN(8)/7)*2*livesTimeout)
		what := m.Rand(uint64(5000 + step))
		operation := livesOperations[what.IntN(len(livesOperations))]
		var ok uint64
		err := m.bounded(ctx, k, operation.name, func(ctx context.Context) error { return operation.do(m, ctx, c, what) })
		if tries > livesTries {
			m.Fail("node %d: step %d of %d processes does not succeed: %v", k, step, c.Size(), err)
			return
		}
		if err == nil {
			ok = 1
		} else {
			c.Revoke()
		}
		var all uint64
		err = m.bounded(ctx, k, "Agree", func(ctx context.Context) (err error) { all, err = c.Agree(ctx, ok); return err })
		if m.isOut(c, err) {
			return
		}
		if err == nil && all == 1 {
			step++
			continue
		}
		c.Revoke()
		var next *mpi.Comm
		err = m.bounded(ctx, k, "Shrink", func(ctx context.Context) (err error) { next, err = c.Shrink(ctx); return err })
		if m.isOut(c, err) || err != nil {
			return
		}
		c = next
	}
}

// isOut reports whether an error says that this process is out.
func (m *livesModel) isOut(c *mpi.Comm, err error) bool {
	return slices.Equal(named(err), []int{c.World().Comm().Rank()})
}

// bounded does an operation, which is to end by itself.
func (m *livesModel) bounded(life context.Context, k int, what string, do func(ctx context.Context) error) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), livesLimit)
	defer cancel()
	err := do(ctx)
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		m.Fail("node %d: %s, begun %v before: %v", k, what, time.Since(begun), err)
	case life.Err() != nil && errors.Is(err, mpi.ErrClosed), errors.Is(err, mpi.ErrRevoked):
	case errors.Is(err, mpi.ErrFreed) && m.anyIsTouched(): // a window that another one did not make
	case errors.Is(err, mpi.ErrProcessFailed):
		for _, rank := range named(err) {
			if rank != k && !m.anyIsTouched() {
				m.Fail("node %d: %s: %v, and it was there", k, what, err)
			}
		}
	default:
		m.Fail("node %d: %s: %v", k, what, err)
	}
	return err
}

func (m *livesModel) anyIsTouched() bool {
	for k := range m.Size {
		if m.IsTouched(k) {
			return true
		}
	}
	return false
}
