package memfifo

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
	"github.com/rawlane/rawlane/transport"
)

// peer is another node: what is under way to it and from it. All is guarded by Domain.mu.
type peer struct {
	d    *Domain
	node mcd.NodeID
	to   mcd.Dest
	conn *reliable.Conn

	room    waitlist         // for room in the lane of requests
	turns   turns            // of parcels, and of those who wait for room
	parcels []*Parcel        // posted, not all of it in frames yet; in order
	placing []*Parcel        // in frames, not acknowledged yet; in order
	calls   map[uint32]*call // that wait for an answer, by tag
	answers []answer         // for it, that wait for room
	partial []byte           // of a long Push of it
	putTo   cursor           // where our last put to it ended
	putFrom cursor           // where its last put to us did
	pushing bool             // a record has begun, and others wait
	done    uint64           // how much was done to it whose end nobody was told of
	flushed uint64           // how much of that is in place
	failed  error            // what was under way is lost; until Flush says so
	losses  int              // how often that was so
	loss    error            // the last time
	refused *AccessError     // since the last Flush
	heard   monotime.Time    // when it sent something last, or was asked to
	lulled  bool             // it is in d.lulled
	stirred bool             // it is in d.stirred
	busy    bool             // the link had no room
	blocked bool             // its requests wait until answers have gone
}

// pump sends what may be sent. The caller holds d.mu.
func (p *peer) pump(now monotime.Time) {
	p.busy = false
	for !p.busy {
		n := p.conn.NextBatch(now, &p.d.batch)
		if n == 0 {
			break
		}
		p.d.unpolled += n
		sent, err := p.d.port.TrySendInPlace(0, p.to, p.d.batch[:n]...)
		if sent < n && errors.Is(err, transport.ErrBusy) {
			p.busy = true
			p.conn.Refused(sent, n)
		} // those that cannot be sent for another reason are lost, as frames are
	}
	if p.conn.Corked(reliable.Requests) || p.conn.Corked(reliable.Replies) {
		p.lullSoon()
		p.d.corked.Store(true)
	}
	p.d.watch(now, p)
}

// askDue is when a peer that owes an answer is asked whether it is there. While the connection has something under way it finds
// out by itself; but the peer may have acknowledged a call, and then died before it answered.
//
// A peer that lives answers what it has acknowledged. Who answers is the library, not a program: a call is acknowledged when apply
// has done it, and its answer is then in the lane of replies, which nothing holds, or in peer.answers, which waits for room there. If
// the answer is dropped, as the peer has given us up, has left or is another one, its life is over, and we hear of that when we ask.
func (p *peer) askDue() (at monotime.Time, ok bool) {
	if len(p.calls) == 0 || !p.conn.AllAcked(reliable.Requests) {
		return at, false
	}
	return p.heard.Add(p.d.cfg.Limit / askParts), true
}

// askWhether sends a frame of no records: what becomes of it the connection finds out.
func (p *peer) askWhether(now monotime.Time) {
	if p.conn.Reserve(now, reliable.Requests, 0) != nil {
		p.heard = now
		p.conn.Uncork(reliable.Requests)
	}
	p.pump(now)
}

// lullSoon has the peer looked after when there is nothing else to do.
func (p *peer) lullSoon() {
	if !p.lulled {
		p.lulled = true
		p.d.lulled = append(p.d.lulled, p)
	}
}

// share is how many full frames a long operation gathers before it sends them in one call of the link.
const share = reliable.MaxBatch

// catchUpPolls is how often who catches up polls at most: for as much as comes while share frames go, and as much again.
const catchUpPolls = 4

// catchUp handles what has come, if much was sent since it did so last, and others send, too: else both ends of a connection would send until
// their windows are full, and then wait for each other. Acknowledgements for p go with what is about to be sent to it. The caller holds
// d.mu, which is free meanwhile.
func (p *peer) catchUp() {
	d := p.d
	if d.unpolled < share || !d.came {
		return
	}
	p.conn.SetAckPolicy(reliable.WillPiggyback)
	d.unpolled, d.came = 0, false
	d.catching++
	d.mu.Unlock()
	for range catchUpPolls {
		if !d.ep.Progress() {
			break
		}
	}
	d.mu.Lock()
	d.catching--
	p.conn.SetAckPolicy(reliable.MayPiggyback)
	if p.ready() != nil {
		p.pump(clock.Now()) // nothing is about to be sent after all
	}
}

// pumpFull is pump in the middle of a long operation. It returns the time: long ones take milliseconds.
func (p *peer) pumpFull(now monotime.Time) monotime.Time {
	if p.conn.Unsent(reliable.Requests) < share {
		return now
	}
	p.pump(now)
	return clock.Now()
}

// advance does what an acknowledgement or a deadline has made possible.
func (p *peer) advance(now monotime.Time) {
	p.sendAnswers(now)
	if p.blocked && len(p.answers) < maxAnswers/2 {
		p.blocked = false
		if records, ok := p.conn.Buffered(reliable.Requests); ok {
			p.take(now, reliable.Requests, records)
		}
	}
	p.sendParcels(now)
	if p.room.first != nil && p.conn.Available(reliable.Requests, 1) > 0 && p.callersTurn() {
		p.room.wake(nil)
	}
	p.pump(now)
}

// reserve returns n bytes for a request, or nil if it has to wait, for room or its turn.
func (p *peer) reserve(now monotime.Time, turn uint64, n int) []byte {
	if !p.isTurn(turn) {
		return nil
	}
	return p.conn.Reserve(now, reliable.Requests, n)
}

// ready says why nothing can be done to the peer now, or nil.
func (p *peer) ready() error {
	if p.d.closed {
		return ErrClosed
	}
	return p.failed
}

// awaitTurn waits until it may be a request's turn, and there may be room. The caller holds d.mu, which is free meanwhile.
func (p *peer) awaitTurn(ctx context.Context, now monotime.Time, turn uint64) error {
	p.turns.join(turn)
	err := p.awaitRoom(ctx, now)
	p.turns.quit(turn)
	if err != nil && len(p.parcels) > 0 {
		p.advance(clock.Now()) // they may have waited for this one
	}
	return err
}

// awaitRoom waits until something may have changed. The caller holds d.mu, which is free meanwhile.
func (p *peer) awaitRoom(ctx context.Context, now monotime.Time) error {
	p.sendParcels(now) // which may have waited for this one's turn to end
	p.pump(now)
	w := p.d.getWaiter()
	p.room.add(w)
	losses := p.losses
	p.d.mu.Unlock()
	err := p.d.sleep(ctx, w, &p.room)
	p.d.mu.Lock()
	if err == nil && p.losses != losses {
		err = p.loss // what has begun cannot go on
	}
	return err
}

// leave says goodbye: a peer that has something under way need not wait for the limit then. If the link has no room, or the bye is
// lost, it has to.
func (p *peer) leave(now monotime.Time) {
	p.conn.Close()
	p.pump(now)
}

// fail ends what is under way, as it may be lost.
func (p *peer) fail(err error) {
	p.losses, p.loss = p.losses+1, err
	lost := p.done != p.flushed || len(p.parcels) > 0 // who waits for a call is told by that
	p.flushed = p.done
	p.room.wake(err)
	for _, list := range [][]*Parcel{p.parcels, p.placing} {
		for _, parcel := range list {
			parcel.end(err)
		}
	}
	for tag, c := range p.calls {
		delete(p.calls, tag)
		c.completion.Complete(err)
	}
	p.parcels, p.placing, p.answers, p.partial, p.blocked = nil, nil, nil, nil, false
	p.putTo, p.putFrom = cursor{}, cursor{}
	for _, f := range p.d.fifos {
		f.unhold(p)
	}
	if lost && p.failed == nil {
		p.failed = err
	}
}

// unflushed reports whether Flush has something to ask or to say.
func (p *peer) unflushed() bool {
	return p.done != p.flushed || p.failed != nil || p.refused != nil || len(p.parcels) > 0 || len(p.placing) > 0
}

// settle makes Flush's answer for this peer, after its fence has ended with err.
func (p *peer) settle(err error) error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	switch {
	case p.failed != nil:
		err = p.failed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("node %d has not answered: %w", p.node, err)
	}
	p.failed = nil
	if p.refused != nil {
		err = errors.Join(err, p.refused)
		p.refused = nil
	}
	return err
}

// call is an operation that waits for an answer.
type call struct {
	p          *peer
	tag        uint32
	completion mcd.Completion
	value      uint64
	reason     Refusal
	id         uint16
	buf        []byte // Get: what is still to come
	left       int
	flushes    uint64 // a fence: how much is in place when it is answered
	next       *call  // of the domain's spare ones
}

// ask makes a call: buf is for its answer, rec is data that goes with it. mu is not held.
func (p *peer) ask(ctx context.Context, op opcode, k Key, off, operand, expected uint64, buf, rec []byte) (*call, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	now, turn := clock.Now(), p.turns.posted
	for {
		if err := p.ready(); err != nil {
			return nil, err
		}
		if b := p.reserve(now, turn, op.size(len(rec))); b != nil {
			c := p.newCall(op, k.ID, buf)
			w := op.begin(b, 0, len(rec))
			if op != opFence {
				w.u16(k.ID)
				w.u64(k.Secret)
			}
			if op != opFence && op != opTry {
				w.u64(off)
			}
			w.u32(c.tag)
			switch op {
			case opTry:
				copy(w.b, rec)
			case opGet:
				w.u32(uint32(len(buf)))
			case opAdd, opSwap:
				w.u64(operand)
			case opCompare:
				w.u64(operand)
				w.u64(expected)
			}
			p.conn.Uncork(reliable.Requests) // somebody waits for the answer
			p.pump(now)
			return c, nil
		}
		if err := p.awaitTurn(ctx, now, turn); err != nil {
			return nil, err
		}
		now = clock.Now()
	}
}

func (p *peer) newCall(op opcode, id uint16, buf []byte) *call {
	d := p.d
	c := d.calls
	if c == nil {
		c = new(call)
	} else {
		d.calls = c.next
	}
	d.tag++
	c.completion.Reset()
	c.p, c.tag, c.id, c.value, c.reason, c.buf, c.left, c.flushes = p, d.tag, id, 0, 0, buf, len(buf), 0
	if op == opFence {
		c.flushes = p.done
	}
	p.calls[c.tag] = c
	return c
}

// answer waits for a call's answer, and gives the call back.
func (p *peer) answer(ctx context.Context, c *call) (uint64, error) {
	err := p.d.await(ctx, &c.completion)
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if p.calls[c.tag] == c {
		delete(p.calls, c.tag) // an answer that comes later is an orphan
		p.done++               // the next Flush tells what has become of it
	}
	if err == nil && c.reason == Full {
		err = ErrFull
	} else if err == nil && c.reason != 0 {
		err = &AccessError{Node: p.node, ID: c.id, Reason: c.reason, Count: 1}
	}
	value := c.value
	c.buf = nil
	c.next = p.d.calls
	p.d.calls = c
	return value, err
}

// answer is one that waits for room: a value, a refusal, or what is left of a Get.
type answer struct {
	op     opcode
	tag    uint32
	value  uint64
	reason Refusal
	id     uint16
	w      *Window
	off, n uint64
	at     uint32 // how much of a Get was answered
}

// reply answers a request: at once if there is room.
func (p *peer) reply(now monotime.Time, a answer) {
	p.answers = append(p.answers, a)
	p.sendAnswers(now)
}

// sendAnswers puts answers into frames as far as there is room.
func (p *peer) sendAnswers(now monotime.Time) {
	for len(p.answers) > 0 {
		if !p.sendAnswer(now, &p.answers[0]) {
			return
		}
		p.answers = append(p.answers[:0], p.answers[1:]...)
	}
}

// sendAnswer returns false if not all of it was put into frames.
func (p *peer) sendAnswer(now monotime.Time, a *answer) bool {
	for a.op == opData {
		if a.w.revoked {
			*a = answer{op: opError, tag: a.tag, reason: NoSuchID}
			break
		}
		room := p.conn.Available(reliable.Replies, opData.size(min(int(a.n), 64)))
		if room == 0 {
			return false
		}
		n := min(int(a.n), room-opData.size(0))
		w := opData.begin(p.conn.Reserve(now, reliable.Replies, opData.size(n)), 0, n)
		w.u32(a.tag)
		w.u32(a.at)
		a.w.read(w.b[:n], a.off)
		a.off, a.n, a.at = a.off+uint64(n), a.n-uint64(n), a.at+uint32(n)
		if a.n == 0 {
			p.conn.Uncork(reliable.Replies)
			return true
		}
	}
	b := p.conn.Reserve(now, reliable.Replies, a.op.size(0))
	if b == nil {
		return false
	}
	w := a.op.begin(b, 0, 0)
	switch a.op {
	case opValue:
		w.u32(a.tag)
		w.u64(a.value)
	case opError:
		w.u32(a.tag)
		w.u8(uint8(a.reason))
	case opRefused:
		w.u16(a.id)
		w.u8(uint8(a.reason))
	}
	if a.op != opRefused {
		p.conn.Uncork(reliable.Replies) // somebody waits for it
	}
	return true
}
