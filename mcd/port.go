package mcd

import (
	"cmp"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/list"
	"github.com/rawlane/rawlane/transport"
)

// Port is one of a node's 256 ports, from Endpoint.OpenPort until Close. All methods may be called
// from any goroutine.
type Port struct {
	e     *Endpoint
	id    PortID
	opts  PortOptions
	locks []io.Closer // held against other processes, one per link that can be shared

	stopping, releasing sync.Once

	mu       sync.Mutex // guards what follows; taken inside the poll lock, never the other way round
	posted   list.List[RecvDesc]
	rx       traffic
	noBuffer atomic.Uint64 // messages
	backlog  backlog
	closed   atomic.Bool // changed under mu

	spare atomic.Pointer[RecvDesc] // for Recv, so that it need not allocate

	owed bool // Receive was told that more follows; belongs to the holder of the poll lock

	out outbox
}

// PortOptions of a port. The zero value is a port with posted buffers and a backlog.
type PortOptions struct {
	// Receive gets the port's messages, in place of posted buffers and the backlog: those that one
	// poll of a link found in a row, in order. The messages and their payloads are views, valid
	// until it returns.
	//
	// It runs in the goroutine that polls, one call at a time per endpoint, and nothing else is
	// received meanwhile. So it must be brief and must not wait (Recv, Await, Send); TrySend and
	// PostSend are for it. A call in progress when the port is closed may end after Close.
	//
	// more says that the poller looks again at once. A call with more is followed by another one,
	// so that what can share a frame with an answer, such as an acknowledgement, may wait for it.
	// The last one has more == false and may have an empty batch. It comes as soon as a poll finds
	// nothing, or when polling stops, with one exception: a goroutine whose own wait was fulfilled
	// by a poll, or that called Progress, returns without it. Then it comes with the next poll
	// that finds nothing, in any goroutine, and from one of the endpoint's own if nobody polls for
	// 250 µs.
	Receive func(batch []Message, more bool)
	// SkipSourceCheck has the port take messages from nodes whose number the table gives to another
	// address. Discovery needs that.
	SkipSourceCheck bool
}

// OpenPort acquires a port. It is the caller's alone until Close: ErrPortBusy if another owner has
// it, in this process or in another one that shares a link's interface and cluster.
//
// Programs choose from 0 to 245. The library's packages have the others, unless they are told
// which: 246 to 248 message passing, 249 calls, 250 and 251 connections, 252 start and exchanges,
// 253 remote memory, 254 barriers, 255 discovery.
//
// Source: MCD §2.3.
func (e *Endpoint) OpenPort(id PortID, opts PortOptions) (*Port, error) {
	if err := e.reservePort(id); err != nil {
		return nil, err
	}
	defer e.running.Done()
	p := &Port{e: e, id: id, opts: opts}
	p.backlog.init(e.cfg.Backlog, e.maxPayload)
	p.out.init(e)
	locked := p.lock()
	if err := cmp.Or(e.addPort(p, locked == nil), locked); err != nil {
		p.unlock()
		return nil, err
	}
	return p, nil
}

// reservePort gives a port to the caller alone, and has Close wait until it is opened or given up.
// No lock is held meanwhile: a service that is asked for the port takes its time.
func (e *Endpoint) reservePort(id PortID) error {
	e.portMu.Lock()
	defer e.portMu.Unlock()
	if err := e.err(); err != nil {
		return err
	}
	if e.reserved[id] {
		return &PortBusyError{Port: id, PID: os.Getpid()}
	}
	e.reserved[id] = true
	e.running.Add(1)
	return nil
}

// addPort opens a port, if it is locked. It errs if all waits have ended meanwhile.
func (e *Endpoint) addPort(p *Port, locked bool) error {
	e.portMu.Lock()
	defer e.portMu.Unlock()
	err := e.err()
	if err == nil && locked {
		e.ports[p.id].Store(p)
	}
	return err
}

// lock locks the port against other processes, on each link.
func (p *Port) lock() error {
	for i := range p.e.nics {
		lock, err := p.e.lockPort(p.e.nics[i].link, p.id)
		if err != nil {
			return err
		}
		if lock != nil {
			p.locks = append(p.locks, lock)
		}
	}
	return nil
}

// lockPort locks a port of a link against other processes: by the service that granted the link's
// sockets, or under the name of the segment. The lock is nil if no other process can have the link.
func (e *Endpoint) lockPort(l transport.Link, id PortID) (io.Closer, error) {
	cluster := uint32(e.cfg.Cluster)
	if p, granted := transport.As[transport.PortLocker](l); granted {
		lock, err := p.LockPort(cluster, uint8(id))
		var locked *transport.LockedError
		if errors.As(err, &locked) {
			return nil, &PortBusyError{Port: id, PID: locked.PID}
		}
		if !errors.Is(err, transport.ErrNotSupported) {
			return lock, err
		}
	}
	s, shared := transport.As[transport.Sharer](l)
	if !shared {
		return nil, nil
	}
	return lockPort(transport.PortLockName(s.Segment(), cluster, uint8(id)), id)
}

// ID returns the port's number.
func (p *Port) ID() PortID { return p.id }

// Addr returns the port's address: this node's number and the port's.
func (p *Port) Addr() Addr { return Addr{p.e.cfg.Node, p.id} }

// Endpoint returns the endpoint that the port belongs to.
func (p *Port) Endpoint() *Endpoint { return p.e }

// deliver gives the port a run of messages. more says that the poller looks again at once. The
// caller holds the poll lock.
func (p *Port) deliver(run []Message, more bool) {
	if p.opts.Receive == nil {
		for i := range run {
			p.place(&run[i])
		}
		return
	}
	size := 0
	for i := range run {
		size += len(run[i].Payload)
	}
	if !p.count(len(run), size) {
		p.e.dropped[dropNoPort].Add(uint64(len(run)))
		return
	}
	if more != p.owed {
		p.e.owe(p, more)
	}
	p.opts.Receive(run, more)
}

// count counts messages that Receive is about to get. It returns false if the port was closed since
// they were parsed, such as by another port's Receive: its counters are read then.
func (p *Port) count(messages, size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return false
	}
	p.rx.add(messages, size)
	return true
}

// isOpen reports whether the port was not closed yet.
func (p *Port) isOpen() bool { return p.e.ports[p.id].Load() == p }

// place puts a message into the first posted buffer or the backlog.
func (p *Port) place(m *Message) {
	p.mu.Lock()
	d := p.posted.PopFront()
	switch { // before anybody has it, and before Close reads the port's counters
	case p.closed.Load():
		p.e.dropped[dropNoPort].Add(1)
	case d != nil || p.backlog.push(m):
		p.rx.add(1, len(m.Payload))
	default:
		p.noBuffer.Add(1)
	}
	p.mu.Unlock()
	if d != nil {
		d.completion.Complete(d.fill(m))
	}
}

// Close ends waits for the port with ErrClosed, sends that wait for room among them, and releases
// it. Messages in the backlog are lost, as are those of posted send descriptors that are not
// done. Further calls wait until the port is released, and do nothing. A service that has the
// port's lock is asked to give it back, and may take 5 s: a Receive function that calls Close has
// the endpoint receive nothing meanwhile.
func (p *Port) Close() error {
	p.closeWith(ErrClosed)
	return nil
}

// closeWith is Close that ends waits with a cause of the endpoint's.
func (p *Port) closeWith(cause error) {
	p.stopWith(cause)
	p.releasing.Do(p.release)
}

// stopWith is closeWith that leaves the port to be released by it.
func (p *Port) stopWith(cause error) { p.stopping.Do(func() { p.stop(cause) }) }

// err returns why the port cannot be used any more.
func (p *Port) err() error {
	if err := p.e.err(); err != nil {
		return err
	}
	return ErrClosed
}

func (p *Port) stop(cause error) {
	p.mu.Lock()
	p.closed.Store(true)
	var waiting []*RecvDesc
	for d := p.posted.PopFront(); d != nil; d = p.posted.PopFront() {
		waiting = append(waiting, d)
	}
	p.mu.Unlock()

	p.out.awaitSenders()
	for i := range p.e.nics {
		p.e.nics[i].queue.drop(p, cause)
	}
	p.e.portMu.Lock()
	p.e.ports[p.id].Store(nil)
	p.e.gone.add(p.Counters())
	p.e.running.Add(1) // before the endpoint's Close has looked for open ports, and not found this one
	p.e.portMu.Unlock()
	for _, d := range waiting {
		d.N = 0
		d.completion.Complete(cause)
	}
}

// release gives the port up, once it was stopped: another program may have it then.
func (p *Port) release() {
	p.unlock()
	p.e.running.Done()
}

// unlock gives the port's locks back, and then the port.
func (p *Port) unlock() {
	for _, l := range p.locks {
		_ = l.Close() // a lock that does not close goes with the process
	}
	p.e.portMu.Lock()
	defer p.e.portMu.Unlock()
	p.e.reserved[p.id] = false
}
