package memfifo

import (
	"context"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// HandlerConfig says what a Handler does. Record is required.
type HandlerConfig struct {
	// Record gets each record that is pushed: once, whole, and in the order of its sender. rec is a
	// view, valid until Record returns.
	//
	// It runs with the domain's lock held: so it must be brief, must not wait, and may call nothing
	// of the domain but from's methods and Complete of a completion. As a rule it runs in the
	// goroutine that polls, as mcd.PortOptions.Receive does; what a full FIFO held up runs where
	// that is emptied or closed, in calls that send, or in the domain's timer, where a panic ends
	// the program. A record with which it panics counts as taken.
	Record func(from Sender, rec []byte)
	// Down, if set, is told of each node that is down, and runs as Record does. Records that come
	// from the node later are of its next life, or of its next connection. Pushes to it may fail
	// with ErrPeerDown until a Flush. The node is not expected any more.
	Down func(err *PeerDownError)
	// Public gives the handler the key that PublicKey returns, in place of a random one: who knows
	// its id may push. Keys of the cluster (mcd.Config.KeyFile) keep strangers out.
	Public bool
}

// Handler is a function that takes the records that nodes with its key push, in place of a FIFO's
// memory: an active message. It is never full, so it holds up no sender.
//
// Source: T. von Eicken et al., Active Messages, ISCA 1992.
type Handler struct {
	d        *Domain
	key      Key
	cfg      HandlerConfig
	expected senders // guarded by d.mu
	closed   bool    // guarded by d.mu
}

// Sender is the node whose record a Handler's function is called with. It is valid in that call.
type Sender struct {
	h *Handler
	p *peer // nil: this node itself
}

// String names the node.
func (s Sender) String() string { return fmt.Sprintf("node %d", s.Node()) }

// PublicKey returns the key of a node's public handler.
func PublicKey(node mcd.NodeID, id uint16) Key { return Key{Node: node, ID: id} }

// Handle has a function take the records that are pushed under an id. FIFOs and handlers share
// their ids. Errors: ErrTaken, ErrClosed.
func (d *Domain) Handle(id uint16, cfg HandlerConfig) (*Handler, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addHandler(id, cfg)
}

// addHandler is Handle with mu held.
func (d *Domain) addHandler(id uint16, cfg HandlerConfig) (*Handler, error) {
	switch {
	case cfg.Record == nil:
		return nil, fmt.Errorf("handler %d: HandlerConfig.Record is nil (want the function that takes records)", id)
	case d.closed:
		return nil, ErrClosed
	case d.fifos[id] != nil || d.handlers[id] != nil:
		return nil, fmt.Errorf("handler %d: %w", id, ErrTaken)
	}
	h := &Handler{d: d, key: Key{Node: d.ep.Node(), ID: id}, cfg: cfg}
	if !cfg.Public {
		h.key.Secret = secret()
	}
	d.handlers[id] = h
	return h, nil
}

// Handler returns a handler of Config.Handlers, or nil.
func (d *Domain) Handler(id uint16) *Handler { return d.first[id] }

// Key returns what other nodes need to push.
func (h *Handler) Key() Key { return h.key }

// Await waits for a completion that one of the handler's functions completes, and polls meanwhile:
// see mcd.Endpoint.Await. Errors: the completion's, ErrClosed, the context's.
func (h *Handler) Await(ctx context.Context, c *mcd.Completion) error { return h.d.await(ctx, c) }

// Expect has a node probed while it says nothing, until Unexpect or until it is down, of which Down
// is told. Without that, a node that dies between two records is not missed. Expect may be called
// again. Errors: mcd.ErrUnknownNode, ErrClosed. This node itself is never down.
func (h *Handler) Expect(node mcd.NodeID) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	switch {
	case h.closed || h.d.closed:
		return ErrClosed
	case node == h.d.ep.Node():
		return nil
	}
	p := h.d.peer(node)
	if p == nil {
		return fmt.Errorf("expect node %d: %w", node, mcd.ErrUnknownNode)
	}
	h.expect(p)
	return nil
}

// expect has a peer probed. The caller holds d.mu.
func (h *Handler) expect(p *peer) {
	if slices.Contains(h.expected, p) {
		return
	}
	h.expected = append(h.expected, p)
	p.expect(clock.Now())
}

// Unexpect ends the probing of a node.
func (h *Handler) Unexpect(node mcd.NodeID) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	h.expected = slices.DeleteFunc(h.expected, func(p *peer) bool {
		if p.node == node {
			p.expecting--
			return true
		}
		return false
	})
}

// Close ends the handler: when it returns, its functions run no more, and further pushes are
// refused. They must not call it.
func (h *Handler) Close() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if !h.closed {
		h.closed = true
		h.expected.release()
		delete(h.d.handlers, h.key.ID)
	}
	return nil
}

// down tells the handler that a peer is down. The caller holds d.mu.
func (h *Handler) down(p *peer, err *PeerDownError) {
	if i := slices.Index(h.expected, p); i >= 0 {
		h.expected = slices.Delete(h.expected, i, i+1)
		p.expecting--
	}
	if h.cfg.Down != nil {
		h.cfg.Down(err)
	}
}

// call has the function take a record; from is nil if it is this node's. The caller holds d.mu.
func (h *Handler) call(from *peer, rec []byte) {
	h.cfg.Record(Sender{h, from}, rec)
}

// Node returns the sender's number.
func (s Sender) Node() mcd.NodeID {
	if s.p == nil {
		return s.h.d.ep.Node()
	}
	return s.p.node
}

// Post is Remote.PostPush of a record to the sender, under an id and secret there: an answer
// without a change of goroutine. A node does not post to itself so: ErrBusy.
func (s Sender) Post(id uint16, secret uint64, rec []byte) error {
	if s.p == nil {
		return ErrBusy
	}
	if err := s.p.d.checkPost(rec); err != nil {
		return err
	}
	err := s.p.postPush(&request{op: opPush, key: Key{s.p.node, id, secret}, data: rec, total: len(rec)})
	s.p.urgent = true
	s.p.pumpLater()
	return err
}

// Expect is Handler.Expect of the sender.
func (s Sender) Expect() {
	if s.p != nil && !s.h.closed {
		s.h.expect(s.p)
	}
}

// MaxFrameRecord returns the longest record, in bytes, that fits a frame: one that is longer is cut
// into parts, which the receiver puts together.
func (d *Domain) MaxFrameRecord() int { return d.sendSize - reliable.HeaderLen - opPush.Size(0) }

// PostPush is Push that does not wait: ErrBusy if the connection has no room for the record now, or
// if what was posted before waits for that. The record has to fit a frame: ErrTooLarge beyond
// MaxFrameRecord. A refusal is told by the next Flush; that of this node itself at once, as is
// ErrFull of a FIFO here. Other errors: ErrPeerDown, mcd.ErrUnknownNode, ErrClosed.
//
// A Handler's function may not call it, as it would wait for the domain's lock for ever: it has
// Sender.Post.
func (r *Remote) PostPush(rec []byte) error {
	if err := r.d.checkPost(rec); err != nil {
		return err
	}
	what := request{op: opPush, key: r.key, data: rec, total: len(rec)}
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.key.Node == r.d.ep.Node() {
		_, err := r.d.executeHere(&what)
		return err
	}
	p, err := r.d.target(r.key.Node)
	if err == nil {
		err = p.postPush(&what)
	}
	if err == nil && p.conn.NeedsPump() {
		p.pump(clock.Now())
	}
	return err
}

// checkPost refuses a record that no frame has room for.
func (d *Domain) checkPost(rec []byte) error {
	if most := d.MaxFrameRecord(); len(rec) > most {
		return fmt.Errorf("post a push of %d bytes: %w (at most %d)", len(rec), ErrTooLarge, most)
	}
	return nil
}

// postPush puts a record into a frame if there is room for all of it. The caller holds d.mu, and
// pumps.
func (p *peer) postPush(what *request) error {
	if err := p.ready(); err != nil {
		return err
	}
	size := opPush.Size(what.total)
	if !p.mayPass() || p.conn.Available(reliable.Requests, size) < size {
		return ErrBusy
	}
	p.encodeWhole(what)
	p.passed++
	return nil
}
