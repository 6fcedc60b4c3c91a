package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc/internal/wire"
)

// Config of a domain. The zero value works; all nodes need the same port.
type Config struct {
	// Port of calls on every node. Zero is DefaultPort.
	Port mcd.PortID
	// Concurrency is how many handlers run at once on this node, inline ones not counted. Zero is
	// DefaultConcurrency.
	Concurrency int
	// Backlog is how many requests wait while that many run, and how many responses for one node;
	// further requests fail with ErrOverloaded. Zero is DefaultBacklog.
	Backlog int
	// PeerTimeout is how long a node that owes an answer may be silent; then calls to it fail. Zero
	// is memfifo.DefaultPeerTimeout; less than a millisecond is refused.
	PeerTimeout time.Duration
}

func (c *Config) setDefaults() error {
	c.Port = cmp.Or(c.Port, DefaultPort)
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.Backlog = cmp.Or(c.Backlog, DefaultBacklog)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, memfifo.DefaultPeerTimeout)
	if c.Concurrency < 0 || c.Backlog < 0 {
		return fmt.Errorf("Config.Concurrency %d, Backlog %d: want 0 or more", c.Concurrency, c.Backlog)
	}
	return nil
}

// Counters of a domain.
type Counters struct {
	Calls      uint64 `json:"calls"`      // made by this node
	Served     uint64 `json:"served"`     // requests whose handler ran
	Refused    uint64 `json:"refused"`    // requests whose handler did not run: late, too many, given up, not served
	Malformed  uint64 `json:"malformed"`  // records that make no sense
	Version    uint64 `json:"version"`    // records of another version
	Unexpected uint64 `json:"unexpected"` // responses to no call, or to one that was given up

	Frames memfifo.Counters `json:"frames"`
}

// Domain is one node's part in calls: what it serves, and what it calls. All its methods may be
// called from any goroutine.
type Domain struct {
	ep    *mcd.Endpoint
	cfg   Config
	layer *activemsg.Layer[node] // mu guards its nodes
	frame int                    // the longest record that fits a frame
	ended context.Context
	end   context.CancelFunc
	// sending ends as Close gives up the responses that wait for room.
	sending context.Context
	giveUp  context.CancelFunc

	mu       sync.Mutex // guards all below, and what says so elsewhere; taken inside memfifo's lock
	closed   bool
	over     chan struct{} // closed when Close has done its work
	servers  map[string]*Server
	pending  map[uint64]*call // of this node, by number
	lastCall uint64
	jobs     jobs
	record   wire.Record // that is being handled
	spare    spare
	stats    Counters
	running  sync.WaitGroup     // goroutines of ours
	unbound  context.CancelFunc // set: giveUp is due, at the latest when this is called
}

// node is another node, or this one. Domain.mu guards it.
type node struct {
	activemsg.Node           // expected, as there are calls, or were before the last sweep
	calls          int       // to it, and of it, that have no response yet
	responses      responses // that wait for room
	responding     bool      // a worker sends them, or will
	untaken        bool      // Close has given some up, for which there was no room
	answered       int       // Lives, when the response was taken that is being sent
	waits          func() bool
}

// newNode makes what the domain knows of a node. Its waits reports whether the one that called, and
// is being answered, was not down since.
func (d *Domain) newNode(a activemsg.Node) *node {
	p := &node{Node: a}
	p.waits = func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return p.answered == p.Lives
	}
	return p
}

// Open lets an endpoint's program call and be called. It opens Config.Port. Errors:
// mcd.ErrPortBusy.
func Open(ep *mcd.Endpoint, cfg Config) (*Domain, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("rpc: %w", err)
	}
	d := &Domain{
		ep: ep, cfg: cfg, over: make(chan struct{}), servers: map[string]*Server{}, pending: map[uint64]*call{},
		lastCall: incarnation.New64(),
	}
	d.jobs.cancels = map[callName]*callContext{}
	d.ended, d.end = context.WithCancel(context.Background())
	d.sending, d.giveUp = context.WithCancel(context.Background())
	d.mu.Lock() // a record may come before the layer is known
	defer d.mu.Unlock()
	var err error
	d.layer, err = activemsg.Open(ep, memfifo.Config{Port: cfg.Port, PeerTimeout: cfg.PeerTimeout, Refused: d.refused},
		memfifo.HandlerConfig{Record: d.receive, Down: d.down}, d.newNode)
	if err != nil {
		return nil, fmt.Errorf("rpc: %w", err)
	}
	d.frame = d.layer.Domain.MaxFrameRecord()
	d.running.Go(d.sweep) // until Close, or the endpoint's end
	return d, nil
}

// Counters returns the counters.
func (d *Domain) Counters() Counters {
	frames := d.layer.Domain.Counters() // before mu is taken
	d.mu.Lock()
	defer d.mu.Unlock()
	stats := d.stats
	stats.Frames = frames
	return stats
}

// sweep looks at the nodes, from time to time. The probing of those with which there are no calls
// ends: so the domain below is not told of each call. Of the others, those that the table did not
// have when they were called first are probed from now on. If another port's function, which may
// run in a wait, ends the goroutine, another one goes on. With the endpoint's end, or the domain's,
// there is nobody left to probe.
func (d *Domain) sweep() {
	over := false
	defer func() {
		if !over && !d.isClosed() {
			d.running.Go(d.sweep) // until Close, as this one
		}
	}()
	tick := time.Tick(d.cfg.PeerTimeout)
	for {
		select {
		case <-d.ended.Done():
			over = true
			return
		case <-d.ep.Done():
			over = true
			return
		case <-tick:
		}
		d.mu.Lock()
		var idle, busy []*node
		for _, p := range d.layer.Nodes {
			switch {
			case p.calls > 0:
				busy = append(busy, p)
			case p.Expected:
				p.Expected = false
				idle = append(idle, p)
			}
		}
		d.mu.Unlock()
		for _, p := range idle {
			d.unexpect(p)
		}
		for _, p := range busy {
			d.expect(p)
		}
	}
}

// expect has a node probed that is called; but not if it was down meanwhile, as the call is over.
func (d *Domain) expect(p *node) {
	_ = d.layer.Handler.Expect(p.ID) // a push to a node that is not known says so
	d.mu.Lock()
	down := !p.Expected
	d.mu.Unlock()
	if down {
		d.unexpect(p)
	}
}

// unexpect ends the probing of a node, unless it was called meanwhile.
func (d *Domain) unexpect(p *node) {
	d.layer.Handler.Unexpect(p.ID)
	d.mu.Lock()
	again := p.Expected
	d.mu.Unlock()
	if again {
		d.expect(p)
	}
}

// receive takes a record: a memfifo.Handler's function, in the goroutine that polls.
func (d *Domain) receive(from memfifo.Sender, rec []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := &d.record
	switch err := r.Parse(rec); {
	case errors.Is(err, wire.ErrVersion):
		d.stats.Version++
		if r.Kind != wire.Response {
			d.refuse(from, r.Call, wire.WrongVersion)
		}
	case err != nil:
		d.stats.Malformed++
	case r.Kind == wire.Request:
		d.serve(from, r)
	case r.Kind == wire.Response:
		d.answered(from.Node(), r)
	case r.Kind == wire.Cancellation:
		d.cancel(callName{from.Node(), r.Call})
	}
}

// down fails the calls to a node: a memfifo.Handler's function.
func (d *Domain) down(err *memfifo.PeerDownError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.layer.Node(err.Node)
	p.Died()
	p.responses = responses{} // nobody waits for them
	d.failCalls(err.Node, err)
	d.cancelNode(err.Node)
}

// refused fails the calls to a node that refuses their records: memfifo's Config.Refused. They are
// of the node's present life: what has the port there has had it since before that began. Calls of
// a later life are its own, whatever a Flush would tell of this one.
func (d *Domain) refused(err *memfifo.AccessError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err.ID == activemsg.HandlerID {
		d.failCalls(err.Node, fmt.Errorf("%w: the node is up, and what it has on port %d takes no calls "+
			"(is that another program's?)", ErrNoService, d.cfg.Port))
	}
}

// failCalls ends the calls to a node. The caller holds mu.
func (d *Domain) failCalls(to mcd.NodeID, err error) {
	for _, c := range d.pending {
		if c.node.ID == to {
			d.finish(c, err)
		}
	}
}

func (d *Domain) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// Close ends the domain: calls that wait fail with ErrClosed, the contexts of handlers are
// cancelled, and Close waits until they have returned. Their responses wait for room for two peer
// timeouts at most. Then it tells the other nodes, and waits as long for what they confirm: the
// error names those that have not taken a response or not confirmed, and have not left either since
// they were called last, without those that were down before, which calls have told. When Close
// returns, also a second time, the port is free. Handlers must not call it. Close it before its
// endpoint.
func (d *Domain) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		<-d.over
		return nil
	}
	defer close(d.over)
	d.closed = true
	d.layer.Closing()
	for _, c := range d.pending {
		d.finish(c, ErrClosed)
	}
	d.jobs.close()
	d.boundResponses()
	d.mu.Unlock()
	d.end()
	d.running.Wait()
	return errors.Join(d.untaken(), d.layer.Close())
}

// untaken ends the bound of responses, and names the nodes that have not taken theirs.
func (d *Domain) untaken() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveUp()
	d.unbound()
	var errs []error
	for _, p := range d.layer.Nodes {
		if p.untaken {
			errs = append(errs, fmt.Errorf("node %d has not taken its responses: %w", p.ID, context.DeadlineExceeded))
		}
	}
	return errors.Join(errs...)
}
