package mcd

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// Port is one of a node's 256 ports, from Endpoint.Port until Close. All methods may be called from any
// goroutine.
type Port struct {
	e     *Endpoint
	id    PortID
	opts  PortOptions
	locks []io.Closer // held against other processes, one per link that can be shared

	mu      sync.Mutex // guards what follows; taken inside the poll lock, never the other way round
	posted  recvQueue
	backlog backlog
	spare   *RecvDesc // for Recv, so that it need not allocate
	closed  bool

	rx       traffic // written by the leader
	noBuffer tally   // likewise

	out outbox
	tx  traffic // written under out.mu

	wantIdle atomic.Bool
}

// PortOptions are what a port may have besides its number.
type PortOptions struct {
	// Handler gets all messages of the port, in place of posted buffers and the backlog. It runs in whichever
	// goroutine polls; while it runs, nothing else is received. So it must be brief and must not wait
	// (Recv, Await, Send); TrySend and PostSend are for it. The message is the endpoint's again when it returns.
	// One that is running when the port is closed may end after Close.
	Handler func(*Message)
	// Enter and Leave, if there is a Handler, are called before the first and behind the last of the messages that come
	// together, up to a batch: a lock that each of them needs is taken once. Between them nothing else is received. Either both or none is set.
	Enter, Leave func()
	// Idle, if there is a Handler, is called after it, or after WantIdle, when whoever polls finds nothing more, or stops
	// polling: the time for what can wait until an answer would have gone. It must be as brief as the Handler.
	Idle func()
	// Strangers has the port take messages from nodes whose number the table gives to another address.
	// Discovery needs that.
	Strangers bool
}

func (o *PortOptions) validate() error {
	if o.Handler == nil && (o.Idle != nil || o.Enter != nil || o.Leave != nil) {
		return errors.New("PortOptions: Enter, Leave and Idle want a Handler")
	}
	if (o.Enter == nil) != (o.Leave == nil) {
		return errors.New("PortOptions: want both Enter and Leave, or neither")
	}
	return nil
}

// Port acquires a port. Nobody else owns it until Close: not in this process, nor in another one that shares
// a link's interface and cluster. ErrPortBusy if somebody does.
//
// Source: MCD §2.3.
func (e *Endpoint) Port(id PortID) (*Port, error) { return e.OpenPort(id, PortOptions{}) }

// OpenPort is Port with options.
func (e *Endpoint) OpenPort(id PortID, opts PortOptions) (*Port, error) {
	e.portMu.Lock()
	defer e.portMu.Unlock()
	if e.closed.Load() {
		return nil, ErrClosed
	}
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("open port %d: %w", id, err)
	}
	if e.ports[id].Load() != nil {
		return nil, &PortBusyError{Port: id, PID: ownPID}
	}
	p := &Port{e: e, id: id, opts: opts}
	p.backlog.init(e.cfg.Backlog, e.maxPayload)
	p.out.init(e.links)
	for _, l := range e.links {
		s, shared := transport.As[transport.Sharer](l)
		if !shared {
			continue
		}
		lock, err := lockPort(fmt.Sprintf("rawlane/%s/%08x/%d", s.Segment(), uint32(e.cfg.Cluster), id), id)
		if err != nil {
			p.unlock()
			return nil, err
		}
		p.locks = append(p.locks, lock)
	}
	e.ports[id].Store(p)
	e.listIdlers()
	e.wantIdle.Store(true) // messages may have come before it was listed
	return p, nil
}

// listIdlers lists the ports that have an Idle. The caller holds portMu.
func (e *Endpoint) listIdlers() {
	var idlers []*Port
	for i := range e.ports {
		if p := e.ports[i].Load(); p != nil && p.opts.Idle != nil {
			idlers = append(idlers, p)
		}
	}
	e.idlers.Store(&idlers)
}

// ID returns the port's number.
func (p *Port) ID() PortID { return p.id }

// Addr returns the port's address: this node's number and the port's.
func (p *Port) Addr() Addr { return Addr{p.e.cfg.Node, p.id} }

// Endpoint returns the endpoint that the port belongs to.
func (p *Port) Endpoint() *Endpoint { return p.e }

// deliver gives a message to the handler, the first posted buffer or the backlog. The caller leads.
func (p *Port) deliver(m *Message) {
	p.e.visit(p)
	if p.opts.Handler != nil {
		p.e.visited.add(len(m.Payload))
		p.opts.Handler(m)
		return
	}
	p.mu.Lock()
	d := p.posted.pop()
	taken := d != nil || !p.closed && p.backlog.push(m)
	p.mu.Unlock()
	if !taken {
		p.noBuffer.add(1)
		return
	}
	p.rx.add(1, len(m.Payload))
	if d != nil {
		d.completion.Complete(d.fill(m))
	}
}

// visit is a run of messages to one port's handler.
type visit struct {
	port            *Port
	messages, bytes int // not counted yet
}

// visit enters a port, having left the one that was visited before. nil is none. The caller leads.
func (e *Endpoint) visit(p *Port) {
	v := &e.visited
	if v.port == p {
		return
	}
	if v.port != nil {
		v.port.rx.add(v.messages, v.bytes)
		if v.port.opts.Leave != nil {
			v.port.opts.Leave()
		}
		if v.port.opts.Idle != nil {
			v.port.WantIdle()
		}
	}
	*v = visit{port: p}
	if p != nil && p.opts.Enter != nil {
		p.opts.Enter()
	}
}

// add counts a message: at once if the handler may let others see it, which it does not before Leave.
func (v *visit) add(size int) {
	v.messages++
	v.bytes += size
	if v.port.opts.Leave == nil {
		v.port.rx.add(v.messages, v.bytes)
		v.messages, v.bytes = 0, 0
	}
}

// WantIdle has the port's Idle be called when whoever polls finds nothing more.
func (p *Port) WantIdle() {
	if !p.wantIdle.Load() {
		p.wantIdle.Store(true)
		p.e.wantIdle.Store(true)
	}
}

// Close releases the port and ends waits for it with ErrClosed. Messages in the backlog are lost.
// Further calls do nothing.
func (p *Port) Close() error {
	p.close()
	return nil
}

func (p *Port) close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	var waiting []*RecvDesc
	for d := p.posted.pop(); d != nil; d = p.posted.pop() {
		waiting = append(waiting, d)
	}
	p.mu.Unlock()

	p.e.portMu.Lock()
	p.e.ports[p.id].Store(nil)
	p.e.listIdlers()
	p.e.gone.add(p.Counters())
	p.unlock()
	p.e.portMu.Unlock()
	for _, d := range waiting {
		d.N = 0
		d.completion.Complete(ErrClosed)
	}
}

func (p *Port) unlock() {
	for _, l := range p.locks {
		_ = l.Close() // a lock that does not close goes with the process
	}
}
