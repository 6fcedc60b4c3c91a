package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
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
	*lives.Program

	mu  sync.Mutex // guards what follows
	ran map[string]int
}

// Every call ends in a bound, with its own response or an error that names its node, which was not
// down if it was heard all the time; its handler runs once at most; and Close ends.
func TestModel(t *testing.T) {
	programs := lives.Programs{Seeds: 40, Short: 2, MaxSize: 4, PeerTimeout: modelTimeout, Accuses: true}
	lives.Run(t, programs, func(p *lives.Program) {
		m := &model{Program: p, ran: map[string]int{}}
		p.Go(m.node)
	})
}

// node lives, and begins anew if it ends before it is done, at times.
func (m *model) node(k int) {
	rng := m.Rand(100 + uint64(k))
	for life := range 3 {
		ep, err := m.Begin(k)
		must(m.T, err)
		d, err := rpc.Open(ep, rpc.Config{PeerTimeout: modelTimeout, Concurrency: 1 + rng.IntN(4), Backlog: 1 + rng.IntN(8)})
		must(m.T, err)
		for _, inline := range []bool{false, true} {
			_, err := d.Serve(fmt.Sprint("echo", inline), rpc.ServerConfig{Handler: m.serve, Inline: inline})
			must(m.T, err)
		}
		ctx, end := context.WithCancel(context.Background())
		kills := rng.IntN(2) == 0
		m.Lives(k, func() {
			if kills {
				m.Kill(k)
			}
			end()
		})
		var callers sync.WaitGroup
		for c := range modelCallers {
			callers.Go(func() { m.call(ctx, k, life, c, d) })
		}
		done := lives.Await(ctx, &callers) // or Close comes in the middle
		m.Leaves(k)
		m.Bounded(k, "Close", modelClose, func() { _ = d.Close() })
		end()
		callers.Wait()
		m.Kill(k)
		_ = ep.Close()
		if done || rng.IntN(3) == 0 {
			return
		}
		time.Sleep(lives.Between(rng, 0, 2*modelTimeout))
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
		m.Fail("call %s: its handler runs %d times", name, n)
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
	rng := m.Rand(uint64(1000 + 100*k + 10*life + caller))
	for i := range modelCalls {
		time.Sleep(time.Duration(rng.ExpFloat64()*float64(modelTimeout/5)) + time.Duration(rng.IntN(4)/3)*4*modelTimeout)
		if ctx.Err() != nil {
			return
		}
		to := (k + 1 + rng.IntN(m.Size-1)) % m.Size
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
			m.Fail("node %d: the response of node %d to call %d.%d is another one's", k, to, caller, i)
		case err == nil, errors.Is(err, rpc.ErrOverloaded), most < modelLimit && errors.Is(err, context.DeadlineExceeded):
		case errors.Is(err, rpc.ErrClosed), errors.Is(err, rpc.ErrNoService):
			if !m.IsExcused(begun, k, to) {
				m.Fail("node %d: call of node %d: %v", k, to, err)
			}
		case isDown:
			if int(down.Node) != to || !m.IsExcused(begun, k, to) {
				m.Fail("node %d: call of node %d: %v, and it was there", k, to, err)
			}
		default:
			m.Fail("node %d: call %d.%d of node %d: %v", k, caller, i, to, err)
		}
	}
}
