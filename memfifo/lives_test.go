package memfifo_test

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
)

var (
	livesSeeds = flag.Int("lives.seeds", 10, "TestLives: how many programs")
	livesSeed  = flag.Uint64("lives.seed", 0, "TestLives: the first seed; 0: random")
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
	t     *testing.T
	seed  uint64
	size  int
	nodes *lives.Nodes
	begun time.Time

	mu      sync.Mutex  // guards what follows
	touched []time.Time // by node: until then others may have a reason to take it for down
	gone    []bool      // by node: it does not live
	goneAt  []time.Time // by node: since when
	ends    []func()    // of the present lives
	windows []memfifo.Key
	fifos   []memfifo.Key
	frozen  [][]byte // memory that nobody writes any more: all of it is frost
}

const frost = 0xEE

// Every operation, wait and Close ends in a bound: by success, or an error that names a node which was
// not heard all the time. What has failed writes to no memory afterwards, nor does anybody to a window
// that was revoked.
func TestLives(t *testing.T) {
	seed, seeds := *livesSeed, enough(*livesSeeds, 3)
	if seed == 0 {
		seed = rand.Uint64()
	}
	for range seeds {
		synctest.Test(t, func(t *testing.T) { runProgram(t, seed) }) // which ends here if it fails
		seed++
	}
}

func runProgram(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	size := 2 + rng.IntN(3)
	n, err := lives.New(size, lives.Config{Seed: seed, Loss: []float64{0, 0, 0.05}[rng.IntN(3)]})
	must(t, err)
	p := &program{
		t: t, seed: seed, size: size, nodes: n, begun: time.Now(),
		touched: make([]time.Time, size), gone: make([]bool, size), goneAt: make([]time.Time, size),
		ends: make([]func(), size), windows: make([]memfifo.Key, size), fifos: make([]memfifo.Key, size),
	}
	var all sync.WaitGroup
	for k := range size {
		all.Go(func() { p.node(k) })
	}
	all.Go(func() { p.disturb(rand.New(rand.NewPCG(seed, 1))) })
	all.Wait()
	for _, mem := range p.frozen {
		if !bytes.Equal(mem, bytes.Repeat([]byte{frost}, len(mem))) {
			p.fail("%d bytes were written to after all was over", len(mem))
		}
	}
}

// fail says what is wrong, when, and how to repeat it.
func (p *program) fail(format string, args ...any) {
	p.t.Errorf("go test ./memfifo -run TestLives -lives.seeds 1 -lives.seed %d: after %v: %s",
		p.seed, time.Since(p.begun), fmt.Sprintf(format, args...))
}

// touch says that something befalls nodes for a while: isTouched excuses what begins before it is
// over, and some timeouts later.
func (p *program) touch(d time.Duration, k ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range k {
		if until := time.Now().Add(d + 3*livesTimeout); until.After(p.touched[k]) {
			p.touched[k] = until
		}
	}
}

// setAlive says whether a node lives from now on.
func (p *program) setAlive(k int, alive bool) {
	p.touch(0, k)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone[k] = !alive; !alive {
		p.goneAt[k] = time.Now()
	}
}

// isTouched reports whether what went wrong between two nodes, and began at some time, has a reason.
func (p *program) isTouched(begun time.Time, a, b int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone[a] || p.gone[b] || p.touched[a].After(begun) || p.touched[b].After(begun)
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

// disturb does what befalls nodes and paths, for a while.
func (p *program) disturb(rng *rand.Rand) {
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	log := func(format string, args ...any) {
		p.t.Logf("%v: %s", time.Since(p.begun), fmt.Sprintf(format, args...))
	}
	var later sync.WaitGroup
	defer later.Wait()
	for range rng.IntN(6) {
		time.Sleep(between(0, 2*livesTimeout))
		k := rng.IntN(p.size)
		other := (k + 1 + rng.IntN(p.size-1)) % p.size
		d := between(livesTimeout/2, 6*livesTimeout)
		switch what := rng.IntN(5); what {
		case 0, 1: // it stands still
			if what == 0 {
				d /= 12
			} else {
				p.touch(d, k)
			}
			log("node %d stands still for %v", k, d)
			p.nodes.Still(k, true)
			later.Go(func() { time.Sleep(d); p.nodes.Still(k, false) })
		case 2: // it ends, with a word or without
			p.setAlive(k, false)
			p.mu.Lock()
			end := p.ends[k]
			p.mu.Unlock()
			if end != nil {
				log("node %d ends", k)
				end()
			}
		case 3, 4: // a path is cut, or both ways
			log("node %d is cut off from %d for %v, both ways %t", k, other, d, what == 4)
			p.touch(d, k, other)
			p.nodes.Cut(k, other, true)
			p.nodes.Cut(other, k, what == 4)
			later.Go(func() {
				time.Sleep(d)
				p.nodes.Cut(k, other, false)
				p.nodes.Cut(other, k, false)
			})
		}
	}
}

// node lives, and begins anew if it ends before it is done, at times.
func (p *program) node(k int) {
	rng := rand.New(rand.NewPCG(p.seed, 100+uint64(k)))
	for life := range 3 {
		ep, err := p.nodes.Begin(k)
		must(p.t, err)
		d, err := memfifo.Open(ep, memfifo.Config{PeerTimeout: livesTimeout})
		must(p.t, err)
		mem := make([]byte, p.size*livesWorkers*livesRegion)
		w, err := d.Register(1, mem, memfifo.All)
		must(p.t, err)
		q, err := d.NewFIFO(1, make([]byte, 4096<<rng.IntN(5)))
		must(p.t, err)
		p.setAlive(k, true)
		ctx, end := context.WithCancel(context.Background())
		kills := rng.IntN(2) == 0
		p.mu.Lock()
		p.windows[k], p.fifos[k] = w.Key(), q.Key()
		p.ends[k] = func() {
			if kills {
				p.nodes.Kill(k)
			}
			end()
		}
		p.mu.Unlock()
		var popping, working sync.WaitGroup
		popping.Go(func() { p.pop(k, q) })
		for c := range livesWorkers {
			working.Go(func() { p.work(ctx, k, life, c, d) })
		}
		done := make(chan struct{})
		go func() { working.Wait(); close(done) }()
		select {
		case <-done:
		case <-ctx.Done(): // Close comes in the middle
		}
		ended := ctx.Err() != nil
		p.setAlive(k, false) // it leaves
		p.mu.Lock()
		p.ends[k] = nil
		p.mu.Unlock()
		if w.Revoke(); rng.IntN(2) == 0 { // others write to it still
			p.freeze(mem)
		}
		begun := time.Now()
		_ = d.Close()
		if took := time.Since(begun); took > livesClose {
			p.fail("node %d: Close took %v", k, took)
		}
		end()
		working.Wait()
		popping.Wait()
		p.nodes.Kill(k)
		_ = ep.Close()
		if !ended || rng.IntN(3) == 0 {
			return
		}
		time.Sleep(time.Duration(rng.Int64N(int64(2 * livesTimeout))))
	}
}

// pop takes what others push. It expects them, and expects them anew where all are down.
func (p *program) pop(k int, q *memfifo.FIFO) {
	var others []mcd.NodeID
	for n := range p.size {
		if n != k {
			others = append(others, mcd.NodeID(n))
		}
	}
	b := make([]byte, 100_000)
	must(p.t, q.Expect(others...))
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
				p.fail("node %d: pop has waited for %v, and no sender lives", k, time.Since(begun))
			}
			continue
		case !is || len(downs.Nodes) != len(others):
			p.fail("node %d: pop: %v", k, err)
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
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range nodes {
		if !p.gone[k] || time.Since(p.goneAt[k]) < d {
			return false
		}
	}
	return true
}

// check reports an error that names a node which was heard all the time.
func (p *program) check(begun time.Time, k, to int, what string, err error) {
	down, isDown := errors.AsType[*memfifo.PeerDownError](err)
	switch {
	case err == nil, errors.Is(err, memfifo.ErrClosed), errors.Is(err, memfifo.ErrFull):
	case isDown && to >= 0 && int(down.Node) != to:
		p.fail("node %d: %s at node %d: %v", k, what, to, err)
	case isDown && !p.isTouched(begun, k, int(down.Node)):
		p.fail("node %d: %s: %v, and it was there", k, what, err)
	case !isDown && !errors.Is(err, memfifo.ErrAccess): // which is of a former key
		p.fail("node %d: %s at node %d: %v", k, what, to, err)
	}
}

// work operates on other nodes.
func (p *program) work(ctx context.Context, k, life, worker int, d *memfifo.Domain) {
	rng := rand.New(rand.NewPCG(p.seed, uint64(1000+100*k+10*life+worker)))
	off := int64(k*livesWorkers+worker) * livesRegion
	for range livesOps {
		time.Sleep(time.Duration(rng.ExpFloat64()*float64(livesTimeout/5)) + time.Duration(rng.IntN(4)/3)*4*livesTimeout)
		to := (k + 1 + rng.IntN(p.size-1)) % p.size
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
			p.fail("node %d: %s at node %d took %v: %v", k, what, to, took, err)
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
