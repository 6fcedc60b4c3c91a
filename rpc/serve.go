package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc/internal/wire"
)

// Handler serves a request of a node: it appends its response to resp, which is empty, and returns
// it. req and resp are its own until it returns. ctx ends with the caller's deadline, when the
// caller gives up or is down, and when the domain is closed. An error goes to the caller as a
// *RemoteError, with its text; but ctx's own is ErrClosed to the caller if the domain was closed,
// and context.DeadlineExceeded if the deadline has passed. A panic ends the process.
type Handler func(ctx context.Context, from mcd.NodeID, req, resp []byte) ([]byte, error)

// ServerConfig of a service. Handler is required.
type ServerConfig struct {
	Handler Handler
	// Inline has the handler run in the goroutine that polls, as mcd.PortOptions.Receive does: it
	// must be brief, must not wait, and must not call the domain. Then a call needs no goroutine on
	// the server's side, also while its program sleeps. The context has no deadline, and req is a
	// view of the frame.
	Inline bool
}

// Server is a service that this node serves.
type Server struct {
	d       *Domain
	name    string
	cfg     ServerConfig
	running sync.WaitGroup // handlers; none is added once it is not among d.servers
}

// Serve has requests to a service be handled, until Close of the server or the domain. Errors:
// ErrTaken, ErrClosed.
func (d *Domain) Serve(service string, cfg ServerConfig) (*Server, error) {
	switch {
	case len(service) == 0 || len(service) > MaxService:
		return nil, fmt.Errorf("serve: service of %d bytes (want 1 to %d)", len(service), MaxService)
	case cfg.Handler == nil:
		return nil, fmt.Errorf("serve %s: ServerConfig.Handler is nil (want the function that serves)", service)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("serve %s: %w", service, ErrClosed)
	}
	if d.servers[service] != nil {
		return nil, fmt.Errorf("serve %s: %w", service, ErrTaken)
	}
	s := &Server{d: d, name: service, cfg: cfg}
	d.servers[service] = s
	return s, nil
}

// Close ends the server: further requests fail with ErrNoService. It waits for the handlers that
// run, and so must not be called by one.
func (s *Server) Close() error {
	s.d.mu.Lock()
	if s.d.servers[s.name] == s {
		delete(s.d.servers, s.name)
	}
	s.d.mu.Unlock()
	s.running.Wait()
	return nil
}

// serve takes a request. The caller holds mu.
func (d *Domain) serve(from memfifo.Sender, r *wire.Record) {
	s := d.servers[string(r.Service)]
	switch {
	case d.layer.Node(from.Node()).responses.len() >= d.cfg.Backlog:
		d.refuse(from, r.Call, wire.Overloaded)
	case d.closed:
		d.refuse(from, r.Call, wire.Closing)
	case s == nil:
		d.refuse(from, r.Call, wire.NoService)
	case s.cfg.Inline:
		d.stats.Served++
		d.serveInline(s, from, r)
	default:
		d.serveLater(s, from, r)
	}
}

// serveInline runs a handler now. The caller holds mu.
func (d *Domain) serveInline(s *Server, from memfifo.Sender, r *wire.Record) {
	memory := d.spare.getMemory()
	b := append(memory, make([]byte, wire.HeadLen)...)
	var resp []byte
	err := errAbandoned
	defer func() { d.reply(from, assemble(b[:wire.HeadLen], resp, r.Call, err)) }()
	resp, err = s.cfg.Handler(d.ended, from.Node(), r.Data, b[wire.HeadLen:])
}

// assemble makes a response of what a handler has returned: its data is mostly behind the head
// already.
func assemble(head, resp []byte, call uint64, err error) []byte {
	if err == nil && len(resp) > MaxMessage {
		err = fmt.Errorf("response of %d bytes: %w (at most %d)", len(resp), ErrTooLarge, MaxMessage)
	}
	if err != nil {
		text := err.Error()
		return append(wire.AppendHead(head[:0], wire.Response, wire.Failed, call), text[:min(len(text), MaxMessage)]...)
	}
	return append(wire.AppendHead(head[:0], wire.Response, wire.OK, call), resp...)
}

// reply sends a response from the goroutine that polls, or has a worker do so. It takes b. The
// caller holds mu.
func (d *Domain) reply(from memfifo.Sender, b []byte) {
	if len(b) <= d.frame && from.Post(activemsg.HandlerID, 0, b) == nil {
		d.spare.putMemory(b)
		return
	}
	d.respondLater(d.layer.Node(from.Node()), b)
}

// respondLater has a worker send a response. The caller holds mu.
func (d *Domain) respondLater(p *node, b []byte) {
	p.responses.push(response{rec: b})
	if !p.responding {
		p.responding = true
		d.submit(&job{node: p})
	}
}

// refuse answers a request whose handler does not run, unless too many of its node's wait for their
// answers. The caller holds mu.
func (d *Domain) refuse(from memfifo.Sender, call uint64, s wire.Status) {
	d.stats.Refused++
	if d.layer.Node(from.Node()).responses.len()-maxRefusals >= d.cfg.Backlog { // which may be any number
		return
	}
	d.reply(from, wire.AppendHead(d.spare.getMemory(), wire.Response, s, call))
}

// run handles a job, in a worker, and sends its response, unless another worker sends to that node:
// so one that takes no responses has one worker wait, and not all. Nobody waits for the response if
// the node was down meanwhile. The caller holds mu.
func (d *Domain) run(j *job) {
	p := j.node
	if j.server != nil {
		j.runs = true
		b := d.handleUnlocked(j)
		j.runs = false
		d.done(j)
		if j.life != p.Lives {
			d.spare.putMemory(b)
			return
		}
		p.responses.push(response{b, j.ctx.at, j.ctx.withdrawn})
		if p.responding {
			return
		}
		p.responding = true
	}
	d.respond(p)
}

// respond sends the responses that wait for a node. The caller holds mu, which is free meanwhile.
func (d *Domain) respond(p *node) {
	var r response // that is being sent
	defer func() {
		p.responding = false
		if r.rec != nil && p.answered == p.Lives { // an inline handler has ended the goroutine
			p.responses.unpop(r)
		}
		if p.responses.len() > 0 {
			p.responding = true
			d.submit(&job{node: p})
		}
	}()
	for p.responses.len() > 0 {
		r = p.responses.pop()
		p.answered = p.Lives
		if !p.responses.isCancelled(r) {
			d.respondOne(p, r)
		}
		d.spare.putMemory(r.rec)
		r = response{}
	}
}

// respondOne sends a response. While it waits for room another worker has this one's place: nodes
// that take no responses hold up nobody else's requests. One that does not go at once is dropped if
// its call was cancelled; if the deadline has passed, the caller hears that alone. The caller holds
// mu, which is free meanwhile. If it fails, the caller's node is down, and nobody waits; or the
// domain closes, and the node takes nothing.
func (d *Domain) respondOne(p *node, r response) {
	b := r.rec
	if len(b) <= d.frame {
		d.mu.Unlock()
		err := p.To.PostPush(b)
		d.mu.Lock()
		if err == nil {
			return
		}
	}
	if r.over {
		return
	}
	if !r.at.IsZero() && !time.Now().Before(r.at) {
		b = wire.AppendHead(b[:0], wire.Response, wire.Expired, wire.CallOf(b))
	}
	d.jobs.workers--
	d.startNext()
	d.mu.Unlock()
	var err error
	defer func() { // also if an inline handler ends the goroutine
		d.mu.Lock()
		d.jobs.workers++
		p.untaken = p.untaken || errors.Is(err, context.Canceled)
	}()
	err = p.To.PushReconnect(d.sending, b, p.waits)
}

// boundResponses has responses be given up that find no room for two peer timeouts behind the last
// handler of a domain that closes. The caller holds mu.
func (d *Domain) boundResponses() {
	if d.closed && len(d.jobs.cancels) == 0 && d.unbound == nil {
		limit, cancel := standstill.ForClose(d.cfg.PeerTimeout)
		d.unbound = cancel // by Close, at the latest
		context.AfterFunc(limit, d.giveUp)
	}
}

// response is one that is to be sent.
type response struct {
	rec  []byte
	at   time.Time // its call's deadline; zero: there is none, or it says why no handler ran
	over bool      // the call was cancelled before its handler returned
}

// responses are those that wait, in the order in which their handlers have ended. Each moves in
// memory once, in the mean, however many wait.
type responses struct {
	all       []response
	sent      int                 // of all, those at the front
	cancelled map[uint64]struct{} // calls that are given up, and may have a response in all; or nil
}

func (s *responses) len() int { return len(s.all) - s.sent }

func (s *responses) push(r response) { s.all = append(s.all, r) }

// pop removes the first; there is one.
func (s *responses) pop() response {
	r := s.all[s.sent]
	s.all[s.sent] = response{}
	if s.sent++; 2*s.sent >= len(s.all) {
		s.all, s.sent = slices.Delete(s.all, 0, s.sent), 0
	}
	return r
}

// unpop puts back in front what pop has returned.
func (s *responses) unpop(r response) { s.all = slices.Insert(s.all, s.sent, r) }

// cancel has the response to a call be dropped, if it is among those that wait.
func (s *responses) cancel(call uint64) {
	if s.len() == 0 || len(s.cancelled) >= maxRefusals {
		return
	}
	if s.cancelled == nil {
		s.cancelled = map[uint64]struct{}{}
	}
	s.cancelled[call] = struct{}{}
}

// isCancelled reports whether nobody waits for a response that pop has returned.
func (s *responses) isCancelled(r response) bool {
	if s.cancelled == nil {
		return false
	}
	_, is := s.cancelled[wire.CallOf(r.rec)]
	if s.len() == 0 {
		s.cancelled = nil
	}
	return is
}

// handleUnlocked is handle without mu. The caller holds that, and does so again also if the handler
// does not return.
func (d *Domain) handleUnlocked(j *job) []byte {
	over := wire.OK // why the handler is not to run any more
	switch {
	case d.closed:
		over = wire.Closing
	case j.ctx.Err() != nil:
		over = wire.Expired
	}
	if over == wire.OK {
		d.stats.Served++
	} else {
		d.stats.Refused++
	}
	d.mu.Unlock()
	defer d.mu.Lock()
	return d.handle(j, over)
}

// handle runs a job's handler, unless that is over, and returns the response.
func (d *Domain) handle(j *job, over wire.Status) []byte {
	defer j.server.running.Done()
	if over != wire.OK {
		return wire.AppendHead(j.memory(), wire.Response, over, j.name.call)
	}
	b := append(j.memory(), make([]byte, wire.HeadLen)...)
	resp, err := j.server.cfg.Handler(j.ctx, j.name.node, j.req, b[wire.HeadLen:])
	switch {
	case errors.Is(err, context.DeadlineExceeded) && errors.Is(j.ctx.Err(), context.DeadlineExceeded):
		return wire.AppendHead(b[:0], wire.Response, wire.Expired, j.name.call)
	case errors.Is(err, context.Canceled) && d.isClosed():
		return wire.AppendHead(b[:0], wire.Response, wire.Closing, j.name.call)
	}
	return assemble(b[:wire.HeadLen], resp, j.name.call, err)
}
