package memfifo_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/lives"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

const (
	livesTimeout = time.Second // of peers
	livesWorkers = 3           // goroutines of each node
	livesOps     = 12          // of each
	livesRegion  = 60_000      // of a worker in each window
	// livesLimit is longer than an operation takes whose node is down, behind others' of which each
	// may find it down; livesClose is longer than a Close: two timeouts and one for goodbyes.
	livesLimit = 6 * livesTimeout
	livesClose = 4 * livesTimeout
)

// program is a random one: nodes put, get, add, push and flush, while some stand still, die, close in
// the middle and begin anew, and paths are cut. Each pops what the others push, and expects them.
type program struct {
	*lives.Program

	mu      sync.Mutex // guards what follows
	windows []memfifo.Key
	fifos   []memfifo.Key
	frozen  [][]byte // memory that nobody writes any more: all of it is frost
}

const frost = 0xEE

// Every operation, wait and Close ends in a bound: by success, or an error that names a node which was
// not heard all the time. What has failed writes to no memory afterwards, nor does anybody to a window
// that was revoked.
func TestLives(t *testing.T) {
	programs := lives.Programs{Seeds: 10, Short: 3, MaxSize: 4, PeerTimeout: livesTimeout}
	lives.Run(t, programs, func(of *lives.Program) {
		p := &program{Program: of, windows: make([]memfifo.Key, of.Size), fifos: make([]memfifo.Key, of.Size)}
		p.Go(p.node)
		for _, mem := range p.frozen {
			if !bytes.Equal(mem, bytes.Repeat([]byte{frost}, len(mem))) {
				p.Fail("%d bytes were written to after all was over", len(mem))
			}
		}
	})
}

// freeze has memory be looked at in the end.
func (p *program) freeze(mem []byte) {
	for i := range mem {
		mem[i] = frost
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = append(p.frozen, mem)
}

// node lives, and begins anew if it ends before it is done, at times.
func (p *program) node(k int) {
	rng := p.Rand(100 + uint64(k))
	for life := range 3 {
		ep, err := p.Begin(k)
		must(p.T, err)
		d, err := memfifo.Open(ep, memfifo.Config{PeerTimeout: livesTimeout})
		must(p.T, err)
		mem := make([]byte, p.Size*livesWorkers*livesRegion)
		w, err := d.Register(1, mem, memfifo.All)
		must(p.T, err)
		q, err := d.NewFIFO(1, make([]byte, 4096<<rng.IntN(5)))
		must(p.T, err)
		p.mu.Lock()
		p.windows[k], p.fifos[k] = w.Key(), q.Key()
		p.mu.Unlock()
		ctx, end := context.WithCancel(context.Background())
		kills := rng.IntN(2) == 0
		p.Lives(k, func() {
			if kills {
				p.Kill(k)
			}
			end()
		})
		var popping, working sync.WaitGroup
		popping.Go(func() { p.pop(k, q) })
		for c := range livesWorkers {
			working.Go(func() { p.work(ctx, k, life, c, d) })
		}
		done := lives.Await(ctx, &working) // or Close comes in the middle
		p.Leaves(k)
		if w.Revoke(); rng.IntN(2) == 0 { // others write to it still
			p.freeze(mem)
		}
		p.Bounded(k, "Close", livesClose, func() { _ = d.Close() })
		end()
		working.Wait()
		popping.Wait()
		p.Kill(k)
		_ = ep.Close()
		if done || rng.IntN(3) == 0 {
			return
		}
		time.Sleep(lives.Between(rng, 0, 2*livesTimeout))
	}
}

// pop takes what others push. It expects them, and expects them anew where all are down.
func (p *program) pop(k int, q *memfifo.FIFO) {
	var others []mcd.NodeID
	for n := range p.Size {
		if n != k {
			others = append(others, mcd.NodeID(n))
		}
	}
	b := make([]byte, 100_000)
	must(p.T, q.Expect(others...))
	for {
		begun := time.Now()
		limited, cancel := context.WithTimeout(context.Background(), 8*livesTimeout)
		_, err := q.Pop(limited, b)
		cancel()
		downs, is := errors.AsType[*memfifo.SendersDownError](err)
		switch {
		case err == nil:
			continue
		case errors.Is(err, memfifo.ErrClosed):
			return
		case errors.Is(err, context.DeadlineExceeded):
			if p.allGone(others, 5*livesTimeout) {
				p.Fail("node %d: pop has waited for %v, and no sender lives", k, time.Since(begun))
			}
			continue
		case !is || len(downs.Nodes) != len(others):
			p.Fail("node %d: pop: %v", k, err)
			return
		}
		for _, down := range downs.Nodes {
			p.check(begun, k, int(down.Node), "pop", down)
		}
		if q.Expect(others...) != nil {
			return
		}
	}
}

// allGone reports whether some nodes have not lived for a time.
func (p *program) allGone(nodes []mcd.NodeID, d time.Duration) bool {
	return !slices.ContainsFunc(nodes, func(n mcd.NodeID) bool { return !p.IsGone(int(n), d) })
}

// check reports an error that names a node which was heard all the time.
func (p *program) check(begun time.Time, k, to int, what string, err error) {
	down, isDown := errors.AsType[*memfifo.PeerDownError](err)
	switch {
	case err == nil, errors.Is(err, memfifo.ErrClosed), errors.Is(err, memfifo.ErrFull):
	case isDown && to >= 0 && int(down.Node) != to:
		p.Fail("node %d: %s at node %d: %v", k, what, to, err)
	case isDown && !p.IsExcused(begun, k, int(down.Node)):
		p.Fail("node %d: %s: %v, and it was there", k, what, err)
	case !isDown && !errors.Is(err, memfifo.ErrAccess): // which is of a former key
		p.Fail("node %d: %s at node %d: %v", k, what, to, err)
	}
}

// work operates on other nodes.
func (p *program) work(ctx context.Context, k, life, worker int, d *memfifo.Domain) {
	rng := p.Rand(uint64(1000 + 100*k + 10*life + worker))
	off := int64(k*livesWorkers+worker) * livesRegion
	for range livesOps {
		time.Sleep(time.Duration(rng.ExpFloat64()*float64(livesTimeout/5)) + time.Duration(rng.IntN(4)/3)*4*livesTimeout)
		to := (k + 1 + rng.IntN(p.Size-1)) % p.Size
		p.mu.Lock()
		w, q := d.Remote(p.windows[to]), d.Remote(p.fifos[to])
		p.mu.Unlock()
		if ctx.Err() != nil || w.Key().Secret == 0 { // its node has not begun
			continue
		}
		most := time.Hour
		if rng.IntN(3) == 0 {
			most = time.Duration(rng.Int64N(int64(livesTimeout)))
		}
		limited, cancel := context.WithTimeout(context.Background(), most)
		data := bytes.Repeat([]byte{byte(1 + worker)}, 1+rng.IntN(3)*rng.IntN(livesRegion/2-8))
		op := rng.IntN(8)
		begun := time.Now()
		what, err := p.operate(limited, op, d, w, q, off, data)
		if errors.Is(err, memfifo.ErrPeerDown) { // it may be what was lost before
			_ = d.Flush(limited)
			begun = time.Now()
			what, err = p.operate(limited, op, d, w, q, off, data)
		}
		cancel()
		if took := time.Since(begun); took > livesLimit {
			p.Fail("node %d: %s at node %d took %v: %v", k, what, to, took, err)
		}
		if most == time.Hour || !errors.Is(err, context.DeadlineExceeded) {
			if what == "flush" {
				to = -1 // of all
			}
			p.check(begun, k, to, what, err)
		}
		if err != nil {
			p.freeze(data) // a Get's memory, or what was sent, is the caller's again
		}
	}
}

// operate does one operation, and says which.
func (p *program) operate(
	ctx context.Context, op int, d *memfifo.Domain, w, q *memfifo.Remote, off int64, data []byte,
) (what string, err error) {
	switch op {
	case 0:
		return "put", w.Put(ctx, off, data)
	case 1:
		return "get", w.Get(ctx, off, data)
	case 2:
		_, err := w.FetchAdd(ctx, off/8*8, 1)
		return "add", err
	case 3:
		return "push", q.Push(ctx, data[:min(len(data), 2000)])
	case 4:
		return "try push", q.TryPush(ctx, data[:min(len(data), 100)])
	case 5:
		parcel := &memfifo.Parcel{To: w, Off: off, Data: data}
		if err := d.Post(parcel); err != nil {
			return "parcel", err
		}
		if err = parcel.WaitRemote(ctx); err != nil {
			_ = parcel.Wait(context.Background()) // the memory is lent until then
		}
		return "parcel", err
	case 6:
		return "get", w.Get(ctx, off, data)
	}
	return "flush", d.Flush(ctx)
}
