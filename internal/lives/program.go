package lives

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds = flag.Int("lives.seeds", 0, "random programs of lives: how many; 0: as many as the test has")
	seed  = flag.Uint64("lives.seed", 1, "random programs of lives: the first seed; 0: random")
)

// Programs are a test's random programs.
type Programs struct {
	Seeds, Short int           // how many; with -short
	MaxSize      int           // of nodes: each program has 2 or more
	PeerTimeout  time.Duration // of what is tested: how long things last is in terms of it
	// Accuses says that who stands still for long may take any other node for down, and tell the
	// others: its timers go on.
	Accuses bool
	// Mild programs have one thing befall a node or a pair at a time, and nothing befall all: for
	// tests whose nodes are excused by what was ever a reason.
	Mild bool
}

// Program is a random program. What its nodes do is the test's; meanwhile some stand still, their
// lives end, and paths are cut.
type Program struct {
	*Nodes
	T    *testing.T
	Size int

	of    Programs
	seed  uint64
	begun time.Time

	mu      sync.Mutex  // guards what follows
	touched []time.Time // by node: until then others may have a reason to take it for down
	gone    []time.Time // by node: since when it does not live; zero: it does
	ends    []func()    // of the present lives
}

// Run runs programs, in virtual time, until one fails.
func Run(t *testing.T, of Programs, program func(p *Program)) {
	first, many := *seed, *seeds
	if first == 0 {
		first = rand.Uint64()
	}
	if many == 0 {
		many = of.Seeds
		if testing.Short() {
			many = of.Short
		}
	}
	for i := range many {
		// Fails in it end the test here.
		synctest.Test(t, func(t *testing.T) { program(newProgram(t, of, first+uint64(i))) })
	}
}

func newProgram(t *testing.T, of Programs, seed uint64) *Program {
	p := &Program{T: t, of: of, seed: seed, begun: time.Now()}
	rng := p.Rand(0)
	p.Size = 2 + rng.IntN(of.MaxSize-1)
	p.touched, p.gone, p.ends = make([]time.Time, p.Size), make([]time.Time, p.Size), make([]func(), p.Size)
	n, err := New(p.Size, Config{Seed: seed, Loss: []float64{0, 0, 0.05}[rng.IntN(3)]})
	if err != nil {
		t.Fatal(err)
	}
	p.Nodes = n
	return p
}

// Rand returns a stream of the program's random numbers. 0 and 1 are those of this package.
func (p *Program) Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(p.seed, stream)) }

// Go runs all nodes, and returns when they are done.
func (p *Program) Go(node func(k int)) {
	var all sync.WaitGroup
	for k := range p.Size {
		all.Go(func() { node(k) })
	}
	all.Go(func() { p.disturb(p.Rand(1)) })
	all.Wait()
}

// Fail says what is wrong, when, and how to repeat it.
func (p *Program) Fail(format string, args ...any) {
	p.T.Errorf("-run '^%s$' -lives.seeds 1 -lives.seed %d: after %v: %s",
		p.T.Name(), p.seed, time.Since(p.begun), fmt.Sprintf(format, args...))
}

// Lives says that a node lives from now on, and how its life is ended. Where it has begun anew,
// others have a reason to take it for down for a while.
func (p *Program) Lives(k int, end func()) {
	p.mu.Lock()
	anew := !p.gone[k].IsZero()
	p.gone[k], p.ends[k] = time.Time{}, end
	p.mu.Unlock()
	if anew {
		p.Touch(0, k)
	}
}

// Leaves says that a node's life has ended, or is about to.
func (p *Program) Leaves(k int) (end func()) {
	p.Touch(0, k)
	p.mu.Lock()
	defer p.mu.Unlock()
	end, p.ends[k] = p.ends[k], nil
	if p.gone[k].IsZero() {
		p.gone[k] = time.Now()
	}
	return end
}

// Touch says that something befalls nodes for a while: others have a reason to take them for down
// until then, and some timeouts longer.
func (p *Program) Touch(d time.Duration, k ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range k {
		if until := time.Now().Add(d + 3*p.of.PeerTimeout); until.After(p.touched[k]) {
			p.touched[k] = until
		}
	}
}

// TouchAll is Touch of all nodes.
func (p *Program) TouchAll(d time.Duration) {
	for k := range p.Size {
		p.Touch(d, k)
	}
}

// IsTouched reports whether there ever was a reason to take a node for down.
func (p *Program) IsTouched(k int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.touched[k].IsZero()
}

// IsExcused reports whether what went wrong between two nodes, and began at some time, has a
// reason.
func (p *Program) IsExcused(begun time.Time, a, b int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range []int{a, b} {
		if !p.gone[k].IsZero() || p.touched[k].After(begun) {
			return true
		}
	}
	return false
}

// IsGone reports whether a node has not lived for a time.
func (p *Program) IsGone(k int, d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.gone[k].IsZero() && time.Since(p.gone[k]) >= d
}

// Bounded does what is to end without a context.
func (p *Program) Bounded(k int, what string, limit time.Duration, do func()) {
	begun := time.Now()
	do()
	if took := time.Since(begun); took > limit {
		p.Fail("node %d: %s took %v", k, what, took)
	}
}

// Await waits for goroutines, or the end of a life in their midst, and reports whether they are
// done.
func Await(ctx context.Context, all *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Between returns a random time.
func Between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

func (p *Program) log(format string, args ...any) {
	p.T.Logf("%v: %s", time.Since(p.begun), fmt.Sprintf(format, args...))
}

// disturb does what befalls nodes and paths, for a while.
func (p *Program) disturb(rng *rand.Rand) {
	var later sync.WaitGroup
	defer later.Wait()
	for range rng.IntN(6) {
		time.Sleep(Between(rng, 0, 3*p.of.PeerTimeout))
		k := rng.IntN(p.Size)
		other := (k + 1 + rng.IntN(p.Size-1)) % p.Size
		p.befall(rng, k, other, &later)
		if !p.of.Mild && rng.IntN(2) == 0 {
			p.befall(rng, other, k, &later)
		}
	}
}

// befall has something befall a node, or its paths. later is what ends that.
func (p *Program) befall(rng *rand.Rand, k, other int, later *sync.WaitGroup) {
	d := Between(rng, p.of.PeerTimeout/2, 6*p.of.PeerTimeout)
	after := func(do func()) { later.Go(func() { time.Sleep(d); do() }) }
	kinds := 6
	if p.of.Mild {
		kinds--
	}
	switch what := rng.IntN(kinds); what {
	case 0: // it stands still, more briefly than anybody waits
		d /= 12
		p.still(k, d, after)
	case 1:
		if p.Touch(d, k); p.of.Accuses {
			p.TouchAll(d)
		}
		p.still(k, d, after)
	case 2:
		if end := p.Leaves(k); end != nil {
			p.log("node %d ends", k)
			end()
		}
	case 3, 4: // a path is cut, or both ways
		p.log("node %d is cut off from %d for %v, both ways %t", k, other, d, what == 4)
		p.Touch(d, k, other)
		p.Cut(k, other, true)
		p.Cut(other, k, what == 4)
		after(func() { p.Cut(k, other, false); p.Cut(other, k, false) })
	case 5:
		p.log("nobody hears node %d for %v", k, d)
		p.TouchAll(d)
		p.cutAll(k, true)
		after(func() { p.cutAll(k, false) })
	}
}

func (p *Program) still(k int, d time.Duration, after func(func())) {
	p.log("node %d stands still for %v", k, d)
	p.Still(k, true)
	after(func() { p.Still(k, false) })
}

// cutAll cuts the paths from a node, or mends them.
func (p *Program) cutAll(k int, cut bool) {
	for j := range p.Size {
		p.Cut(k, j, cut)
	}
}
