package rpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc/internal/wire"
)

// Handlers run in workers: goroutines that wait for the next request by polling, so that the one
// that finds it runs it. A request that finds none waiting gets a worker of its own, up to
// Config.Concurrency, and is queued beyond.
//
//	receive ── request ──> idle worker, the last to be idle first
//	               └─────> new worker, or queue ──> worker that has finished

// callName names a request among those of all nodes.
type callName struct {
	node mcd.NodeID
	call uint64
}

// job is a request for a worker; without a server there are responses that found no room.
type job struct {
	server *Server
	node   *node
	life   int // node.Lives when it came
	name   callName
	ctx    *callContext
	req    []byte
	buf    []byte // memory for the response
	runs   bool   // its handler does
}

// memory returns memory for the response.
func (j *job) memory() []byte { return j.buf[:0] }

// worker is a goroutine that runs jobs.
type worker struct {
	completion mcd.Completion
	job        *job // given to it while it was idle
}

// jobs is the requests that run or wait. Domain.mu guards it.
type jobs struct {
	workers int
	idle    []*worker
	queue   []*job
	expiry  time.Time                 // until then no deadline of queue passes; zero: it has none
	cancels map[callName]*callContext // of requests that run or wait
}

// push queues a job.
func (s *jobs) push(j *job) {
	s.queue = append(s.queue, j)
	s.expires(j)
}

// expires notes a job's deadline.
func (s *jobs) expires(j *job) {
	if j.server == nil {
		return
	}
	if at, ok := j.ctx.Deadline(); ok && (s.expiry.IsZero() || at.Before(s.expiry)) {
		s.expiry = at
	}
}

// first takes the job that waits longest; there is one.
func (s *jobs) first() *job {
	j := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	return j
}

// cancel ends a request, of which nobody waits for the response. The caller holds mu.
func (d *Domain) cancel(n callName) {
	if c := d.jobs.cancels[n]; c != nil {
		c.withdrawn = true
		c.end(context.Canceled)
		d.drop(func(j *job) bool { return j.name == n })
	} else if p := d.layer.Nodes[n.node]; p != nil {
		p.responses.cancel(n.call)
	}
}

// cancelNode ends a node's requests. The caller holds mu.
func (d *Domain) cancelNode(node mcd.NodeID) {
	for n, c := range d.jobs.cancels {
		if n.node == node {
			c.end(context.Canceled)
		}
	}
	d.drop(func(j *job) bool { return j.name.node == node })
}

// dropLate drops requests whose deadlines have passed. The caller holds mu.
func (d *Domain) dropLate() {
	now := time.Now()
	if d.jobs.expiry.IsZero() || now.Before(d.jobs.expiry) {
		return
	}
	d.jobs.expiry = time.Time{}
	d.drop(func(j *job) bool {
		at, ok := j.ctx.Deadline()
		if ok && !now.Before(at) {
			return true
		}
		d.jobs.expires(j)
		return false
	})
}

// drop has those requests that wait and are over leave their places. The caller holds mu.
func (d *Domain) drop(over func(*job) bool) {
	d.jobs.queue = slices.DeleteFunc(d.jobs.queue, func(j *job) bool {
		if j.server == nil || !over(j) {
			return false
		}
		d.stats.Refused++
		d.done(j)
		d.spare.putMemory(j.buf)
		j.server.running.Done()
		return true
	})
}

// close ends all contexts, and the workers that wait.
func (s *jobs) close() {
	for _, c := range s.cancels {
		c.end(context.Canceled)
	}
	for _, w := range s.idle {
		w.completion.Complete(nil)
	}
	s.idle = nil
}

// serveLater has a worker run a request's handler, unless a request of that number runs or waits:
// a cancellation could not end both. The caller holds mu.
func (d *Domain) serveLater(s *Server, from memfifo.Sender, r *wire.Record) {
	name := callName{from.Node(), r.Call}
	if d.jobs.cancels[name] != nil {
		d.stats.Malformed++
		return
	}
	if len(d.jobs.queue) >= d.cfg.Backlog {
		d.dropLate()
	}
	if len(d.jobs.queue) >= d.cfg.Backlog {
		d.refuse(from, r.Call, wire.Overloaded)
		return
	}
	p := d.layer.Node(from.Node())
	p.calls++
	if !p.Expected {
		p.Expected = true
		from.Expect() // if it dies, nobody waits for the response
	}
	j := &job{
		server: s, node: p, life: p.Lives, name: name, ctx: newCallContext(r.Left),
		req: append(d.spare.getMemory(), r.Data...), buf: d.spare.getMemory(),
	}
	d.jobs.cancels[j.name] = j.ctx
	s.running.Add(1)
	d.submit(j)
}

// submit hands a job to a worker. Responses wait for no place, which handlers may have for long: a
// worker that is one too many ends behind them. The caller holds mu.
func (d *Domain) submit(j *job) {
	if n := len(d.jobs.idle); n > 0 {
		w := d.jobs.idle[n-1]
		d.jobs.idle = d.jobs.idle[:n-1]
		w.job = j
		w.completion.Complete(nil)
		return
	}
	if (j.server == nil || d.jobs.workers < d.cfg.Concurrency) && !d.closed {
		d.startWorker(j)
		return
	}
	d.jobs.push(j) // of a closed domain: those that run take it, or nobody
}

// startWorker starts a worker with a job. The caller holds mu.
func (d *Domain) startWorker(j *job) {
	d.jobs.workers++
	w := &worker{job: j}
	d.running.Go(func() { d.work(w) }) // Close waits for it
}

// startNext starts a worker in the place of one that has none any more, if a job waits; unless that
// one was too many. It does so also as the domain closes, which waits for the goroutine that calls
// this, and so for the worker. The caller holds mu.
func (d *Domain) startNext() {
	if len(d.jobs.queue) > 0 && d.jobs.workers < d.cfg.Concurrency {
		d.startWorker(d.jobs.first())
	}
}

// work runs jobs until nothing is to be done and others wait for more, or the domain is closed.
func (d *Domain) work(w *worker) {
	var j *job // that runs
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() {
		d.jobs.workers--
		if w.job != nil { // given to it while an inline handler ended the goroutine
			d.submit(w.job)
		}
		if j != nil && j.runs { // its handler has panicked, or ended the goroutine
			d.done(j)
			if j.life == j.node.Lives {
				d.respondLater(j.node, assemble(nil, nil, j.name.call, errAbandoned))
			}
		}
		d.startNext()
	}()
	for {
		if j = d.nextJob(w); j != nil {
			d.run(j)
			if d.jobs.workers > d.cfg.Concurrency { // another one is there in its place
				j = nil
				return
			}
			continue
		}
		if d.closed || len(d.jobs.idle) >= idleWorkers {
			return
		}
		if err := d.awaitJob(w); err != nil && w.job == nil {
			return // the endpoint is closed
		}
	}
}

// awaitJob has a worker wait for a job. The caller holds mu, which is free meanwhile.
func (d *Domain) awaitJob(w *worker) error {
	d.jobs.idle = append(d.jobs.idle, w)
	w.completion.Reset()
	d.mu.Unlock()
	defer func() { // also if an inline handler ends the goroutine
		d.mu.Lock()
		d.jobs.idle = slices.DeleteFunc(d.jobs.idle, func(x *worker) bool { return x == w })
	}()
	return d.layer.Handler.Await(context.Background(), &w.completion)
}

// errAbandoned is the response of a handler that has ended its goroutine.
var errAbandoned = errors.New("the handler has ended its goroutine (runtime.Goexit, as FailNow of a test does)")

// nextJob returns the job that a worker was given, or the first that waits. The caller holds mu.
func (d *Domain) nextJob(w *worker) *job {
	if j := w.job; j != nil {
		w.job = nil
		return j
	}
	if len(d.jobs.queue) == 0 {
		return nil
	}
	return d.jobs.first()
}

// done ends a request whose handler has returned. The caller holds mu.
func (d *Domain) done(j *job) {
	delete(d.jobs.cancels, j.name)
	j.node.calls--
	j.ctx.end(context.Canceled)
	d.spare.putMemory(j.req)
	d.boundResponses()
}

// callContext is the context of a handler. Its channel and timer are made when somebody asks for
// them: most handlers do not.
type callContext struct {
	at        time.Time // zero: no deadline
	withdrawn bool      // its caller has cancelled it; guarded by Domain.mu

	mu    sync.Mutex // guards what follows; taken inside Domain.mu
	err   error
	done  chan struct{}
	timer *time.Timer
}

var _ context.Context = (*callContext)(nil)

// newCallContext makes a context that ends after a time; 0 is never.
func newCallContext(left time.Duration) *callContext {
	c := &callContext{}
	if left > 0 {
		c.at = time.Now().Add(left)
	}
	return c
}

// Deadline returns the caller's.
func (c *callContext) Deadline() (at time.Time, ok bool) { return c.at, !c.at.IsZero() }

// Value returns nil.
func (c *callContext) Value(any) any { return nil }

// Err returns why the call is over, or nil.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !c.at.IsZero() && !time.Now().Before(c.at) {
		c.endLocked(context.DeadlineExceeded)
	}
	return c.err
}

// Done is closed when the call is over.
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		} else if !c.at.IsZero() {
			c.timer = time.AfterFunc(time.Until(c.at), func() { c.end(context.DeadlineExceeded) })
		}
	}
	return c.done
}

// end ends the context, once.
func (c *callContext) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(err)
}

func (c *callContext) endLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
}
