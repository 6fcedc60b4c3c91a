// Package workers runs functions in goroutines that are kept for the next ones. The stack of a new
// goroutine grows several times on the way to a link, and is copied each time.
package workers

import "sync"

// maxIdle is how many goroutines wait for a function.
const maxIdle = 8

// Pool runs functions in goroutines of its own. The zero Pool is ready.
type Pool struct {
	mu      sync.Mutex
	idle    []chan func() // of goroutines that wait, the last one first; closed when the pool ends
	ended   bool
	running sync.WaitGroup
}

// Go calls f in a goroutine. Behind Wait, it is for functions that Wait waits for alone.
func (p *Pool) Go(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		w <- f
		return
	}
	p.running.Go(func() { p.work(f) })
}

// Wait returns when all functions have, and keeps no goroutine from then on.
func (p *Pool) Wait() {
	p.mu.Lock()
	p.ended = true
	for _, w := range p.idle {
		close(w)
	}
	p.idle = nil
	p.mu.Unlock()
	p.running.Wait()
}

// work calls f, and then what comes. A function may end the goroutine.
func (p *Pool) work(f func()) {
	next := make(chan func(), 1)
	for f != nil {
		f()
		if !p.rest(next) {
			return
		}
		f = <-next
	}
}

// rest reports whether a goroutine is to wait for the next function.
func (p *Pool) rest(next chan func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || len(p.idle) == maxIdle {
		return false
	}
	p.idle = append(p.idle, next)
	return true
}
