package memfifo

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Config of a domain. The zero value will do.
type Config struct {
	// Port that remote memory operations use on every node. Zero is DefaultPort.
	Port mcd.PortID
	// Limit is how long a peer may be silent that owes an answer; then it is down. Zero is DefaultLimit.
	Limit time.Duration
}

// Domain is one node's part in remote memory: its windows and FIFOs, and its connections to others. All methods, and those of
// windows, FIFOs and remotes, may be called from any goroutine.
type Domain struct {
	ep   *mcd.Endpoint
	cfg  Config
	port *mcd.Port
	size int // of a frame

	mu       sync.Mutex // guards what follows, and what says so elsewhere; taken inside the endpoint's poll lock
	peers    []*peer    // by node; nil: never talked to
	windows  map[uint16]*Window
	recent   *Window // the one that was looked up last; nil: none, or it was revoked
	fifos    map[uint16]*FIFO
	closed   bool
	ended    chan struct{} // made by the first Close, and closed when it is over
	tag      uint32        // of the last call
	frames   [][]byte
	waiters  *waiter     // spare ones
	calls    *call       // likewise
	lulled   []*peer     // heard since the last lull, or with a frame that waits for more to share it
	corked   atomic.Bool // lull has something to do before a wait; read without mu
	stirred  []*peer     // for which messages that have come together have made something possible
	header   reliable.Header
	catching int           // how many are in catchUp: what they have queued is about to have company
	unpolled int           // frames sent since the last catchUp
	came     bool          // data has come since
	handled  monotime.Time // when a frame was handled for which the time mattered
	batch    [reliable.MaxBatch][]byte
	timer    *time.Timer
	armed    bool
	due      monotime.Time // if armed
	stats    Counters
}

// Counters of a domain. Those of its connections count frames: Sent, Retransmitted (of these), Acks
// (sent without data), Delivered, OutOfOrder (kept behind a gap), Duplicate, BeyondWindow (no room),
// StaleIncarnation (of or for a former incarnation) and TooLong.
type Counters struct {
	reliable.Counters
	Malformed uint64 `json:"malformed"` // frames and records that make no sense
	Strangers uint64 `json:"strangers"` // frames of nodes that the table does not have
	Refused   uint64 `json:"refused"`   // operations of others
	Orphans   uint64 `json:"orphans"`   // answers that nobody waits for any more
}

// Open makes a domain. mcd.ErrPortBusy.
func Open(ep *mcd.Endpoint, cfg Config) (*Domain, error) {
	if cfg.Port == 0 {
		cfg.Port = DefaultPort
	}
	if cfg.Limit == 0 {
		cfg.Limit = DefaultLimit
	}
	if cfg.Limit < 0 {
		return nil, fmt.Errorf("memfifo: Limit %v (want 0 or more)", cfg.Limit)
	}
	d := &Domain{ep: ep, cfg: cfg, size: ep.MaxPayload(), windows: map[uint16]*Window{}, fifos: map[uint16]*FIFO{}}
	if least := reliable.HeaderLen + opCompare.size(0); d.size < least {
		return nil, fmt.Errorf("memfifo: messages of %d bytes are too short (want %d)", d.size, least)
	}
	d.timer = time.AfterFunc(time.Hour, d.tick) // until something is due, an hour is never
	d.timer.Stop()
	d.mu.Lock() // a message may come before the port is known
	defer d.mu.Unlock()
	var err error
	d.port, err = ep.OpenPort(cfg.Port, mcd.PortOptions{Receive: d.receive})
	if err != nil {
		return nil, fmt.Errorf("memfifo: %w", err)
	}
	return d, nil
}

// secret returns a random number.
func secret() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// Counters returns the domain's counters.
func (d *Domain) Counters() Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.stats
	for _, p := range d.peers {
		if p == nil {
			continue
		}
		n := p.conn.Counters()
		c.Sent += n.Sent
		c.Retransmitted += n.Retransmitted
		c.Acks += n.Acks
		c.Delivered += n.Delivered
		c.OutOfOrder += n.OutOfOrder
		c.Duplicate += n.Duplicate
		c.BeyondWindow += n.BeyondWindow
		c.StaleIncarnation += n.StaleIncarnation
		c.TooLong += n.TooLong
	}
	return c
}

// peer returns the connection to a node, made on first use, or nil if the table does not have the node. The caller holds
// mu.
func (d *Domain) peer(node mcd.NodeID) *peer {
	if int(node) < len(d.peers) && d.peers[node] != nil {
		return d.peers[node]
	}
	known := slices.ContainsFunc(d.ep.Nodes(), func(n mcd.Node) bool { return n.ID == node })
	if !known || node == d.ep.Node() {
		return nil
	}
	d.peers = append(d.peers, make([]*peer, max(0, int(node)+1-len(d.peers)))...)
	p := &peer{d: d, node: node, to: mcd.To(mcd.Addr{Node: node, Port: d.cfg.Port}), calls: map[uint32]*call{}}
	p.conn = reliable.New(reliable.Config{
		Incarnation: uint32(secret()) | 1, FrameSize: d.size, Headroom: mcd.Headroom, PeerTimeout: d.cfg.Limit, Alloc: d.alloc, Free: d.free,
	})
	p.conn.SetAckPolicy(reliable.MayPiggyback)
	d.peers[node] = p
	return p
}

func (d *Domain) alloc() []byte {
	if n := len(d.frames); n > 0 {
		b := d.frames[n-1]
		d.frames = d.frames[:n-1]
		return b
	}
	return make([]byte, mcd.Headroom+d.size)
}

func (d *Domain) free(b []byte) {
	if len(d.frames) < spareFrames {
		d.frames = append(d.frames, b)
	}
}

// receive takes a batch of messages, in the endpoint's progress, and then does what they have made possible.
func (d *Domain) receive(batch []mcd.Message, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range batch {
		d.handle(&batch[i])
	}
	if len(d.stirred) > 0 {
		now := clock.Now()
		for _, p := range d.stirred {
			p.stirred = false
			if !d.closed {
				p.advance(now)
			}
		}
		d.stirred = d.stirred[:0]
	}
	if !more {
		d.lull()
	}
}

// handle takes a message. The caller holds mu.
func (d *Domain) handle(m *mcd.Message) {
	if d.closed {
		return
	}
	h := &d.header
	if reliable.Parse(m.Payload, h) != nil {
		d.stats.Malformed++
		return
	}
	p := d.peer(m.From.Node)
	if p == nil {
		d.stats.Strangers++
		return
	}
	records := m.Payload[reliable.HeaderLen:]
	event := reliable.Deliver
	if !p.conn.Continues(h, len(records)) {
		d.handled = clock.Now()
		event = p.conn.Handle(d.handled, h, records)
	}
	p.heard = d.handled
	d.came = d.came || h.Kind == reliable.Data
	switch event {
	case reliable.Deliver:
		p.take(d.handled, h.Lane, records)
	case reliable.PeerRestarted:
		p.fail(&PeerDownError{Node: p.node, Restarted: true})
	case reliable.PeerClosed:
		p.fail(&PeerDownError{Node: p.node, Left: true})
	}
	p.endPlaced()
	if !p.stirred && (p.conn.NeedsPump() || len(p.answers) > 0) {
		p.stirred = true
		d.stirred = append(d.stirred, p)
	}
	p.lullSoon()
}

// lull sends what could wait for more to share its frame. It follows the last message of a poll, or the operations of a caller that
// begins to wait. While a caller is in catchUp, which is about to send more, it waits for the next of these. The caller holds mu.
func (d *Domain) lull() {
	d.corked.Store(d.catching > 0)
	if d.closed || d.catching > 0 {
		return
	}
	now := clock.Now()
	lulled := d.lulled
	d.lulled = nil
	for _, p := range lulled {
		p.lulled = false
		p.conn.Uncork(reliable.Requests)
		p.conn.Uncork(reliable.Replies)
		p.conn.SetAckPolicy(reliable.NoPiggyback)
		p.pump(now)
		p.conn.SetAckPolicy(reliable.MayPiggyback)
	}
	if d.lulled == nil {
		d.lulled = lulled[:0]
	}
}

// watch sees to it that a peer's deadline is kept. The caller holds mu.
func (d *Domain) watch(now monotime.Time, p *peer) {
	at, ok := p.conn.Deadline()
	if p.busy && (!ok || now.Add(busyRetry).Before(at)) {
		at, ok = now.Add(busyRetry), true
	}
	if ask, owes := p.askDue(); owes && (!ok || ask.Before(at)) {
		at, ok = ask, true
	}
	if ok && (!d.armed || at.Before(d.due)) {
		d.armed, d.due = true, at
		d.timer.Reset(at.Sub(now))
	}
}

// tick is what the timer does, in a goroutine of its own.
func (d *Domain) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = false
	if d.closed {
		return
	}
	now := clock.Now()
	for _, p := range d.peers {
		if p == nil {
			continue
		}
		if at, ok := p.conn.Deadline(); ok && !now.Before(at) {
			if p.conn.Advance(now) {
				p.fail(&PeerDownError{Node: p.node, Limit: d.cfg.Limit})
			}
			p.advance(now)
			continue
		}
		if p.busy {
			p.pump(now)
		}
		if at, ok := p.askDue(); ok && !now.Before(at) {
			p.askWhether(now)
		}
		d.watch(now, p)
	}
}

// getWaiter returns one that nobody uses. The caller holds mu.
func (d *Domain) getWaiter() *waiter {
	w := d.waiters
	if w == nil {
		return new(waiter)
	}
	d.waiters = w.next
	return w
}

// await waits for a completion. An endpoint that is closed before the domain ends the domain's waits, too.
func (d *Domain) await(ctx context.Context, c *mcd.Completion) error {
	if d.corked.Load() {
		d.mu.Lock()
		d.lull()
		d.mu.Unlock()
	}
	err := d.ep.Await(ctx, c)
	if errors.Is(err, mcd.ErrClosed) {
		return ErrClosed
	}
	return err
}

// sleep waits until a waiter is woken, and gives it back. mu is not held.
func (d *Domain) sleep(ctx context.Context, w *waiter, list *waitlist) error {
	err := d.await(ctx, &w.completion)
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.listed {
		list.remove(w)
	}
	w.next = d.waiters
	d.waiters = w
	return err
}

// Flush returns when all that was done before to the given nodes, or to all without any, is in place there, or was refused.
//
// Errors, joined: an *AccessError for a node that has refused something since the last Flush, a *PeerDownError for one to
// which something was lost; ctx's error with the nodes that have not answered; ErrClosed.
func (d *Domain) Flush(ctx context.Context, nodes ...mcd.NodeID) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return ErrClosed
	}
	var asked []*peer
	for _, p := range d.peers {
		if p != nil && (len(nodes) == 0 || slices.Contains(nodes, p.node)) && p.unflushed() {
			asked = append(asked, p)
		}
	}
	d.mu.Unlock()
	fences := make([]*call, 0, len(asked))
	var errs []error
	for _, p := range asked {
		c, err := p.ask(ctx, opFence, Key{}, 0, 0, 0, nil, nil)
		if err != nil {
			errs = append(errs, p.settle(err))
			continue
		}
		fences = append(fences, c)
	}
	for _, c := range fences {
		p := c.p
		_, err := p.answer(ctx, c)
		errs = append(errs, p.settle(err))
	}
	return errors.Join(errs...)
}

// Close flushes, for as long as peers answer, says goodbye to them, and ends the domain. Waits end with ErrClosed. The error names
// the nodes that have not confirmed what was done to them. When Close returns, also a second time, the port is free.
//
// Close the domain before its endpoint. With the endpoint closed first, waits end with ErrClosed as well, but nobody is told that
// this node has left, and Close cannot confirm anything.
func (d *Domain) Close() error {
	d.mu.Lock()
	ended := d.ended
	if ended == nil {
		d.ended = make(chan struct{})
	}
	d.mu.Unlock()
	if ended != nil {
		<-ended
		return nil
	}
	defer close(d.ended)
	return d.close()
}

func (d *Domain) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*d.cfg.Limit)
	defer cancel()
	err := d.Flush(ctx)
	d.mu.Lock()
	d.closed = true
	d.timer.Stop()
	now := clock.Now()
	for _, p := range d.peers {
		if p != nil {
			p.leave(now)
			p.fail(ErrClosed)
		}
	}
	for _, w := range d.windows {
		w.wake(ErrClosed)
	}
	for _, f := range d.fifos {
		f.waiters.wake(ErrClosed)
	}
	d.mu.Unlock()
	return errors.Join(err, d.port.Close())
}
