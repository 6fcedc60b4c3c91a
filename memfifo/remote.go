package memfifo

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Remote is a window or FIFO that one has the key of, on another node or on this one. It is a value to be kept, and costs
// nothing.
type Remote struct {
	d   *Domain
	key Key
}

var (
	_ io.WriterAt = (*Remote)(nil)
	_ io.ReaderAt = (*Remote)(nil)
)

// Remote returns what a key stands for.
func (d *Domain) Remote(k Key) *Remote { return &Remote{d, k} }

// checkOffset refuses at once what no owner would take.
func checkOffset(off int64) error {
	if off < 0 {
		return fmt.Errorf("offset %d: want 0 or more", off)
	}
	return nil
}

// Key returns the key.
func (r *Remote) Key() Key { return r.key }

// Put copies p into the remote window at byte offset off. It returns when p may be reused; the bytes are in place once a
// later Flush has returned. Puts from one node to one node land in order. A Put that is longer than a frame is cut.
//
// Errors: ErrPeerDown, mcd.ErrUnknownNode, ErrClosed, the context's: then some of it may have been written; and at once for
// an offset below 0. A refusal by the owner (ErrAccess: key, bounds or rights; nothing of the part concerned was written) is known only there, and comes back
// from the next Flush.
//
// Source: MBCF §2.1; cutting into segments: CENJU §3.1, §4.1.
func (r *Remote) Put(ctx context.Context, off int64, p []byte) error { return r.put(ctx, off, p, 0) }

// PutNotify is Put that adds one to the window's notifications when all is in place: see Window.Wait.
func (r *Remote) PutNotify(ctx context.Context, off int64, p []byte) error {
	return r.put(ctx, off, p, flagNotify)
}

// Signal adds one to the window's notifications, when all that this node did to the owner before is in place.
func (r *Remote) Signal(ctx context.Context) error { return r.put(ctx, 0, nil, flagNotify) }

// Segment is a part of a vectored Put.
type Segment struct {
	Off  int64
	Data []byte
}

// PutV is a Put of several pieces, which share frames. If it fails, those before the one that did are under way.
func (r *Remote) PutV(ctx context.Context, pieces ...Segment) error {
	for i, s := range pieces {
		if err := r.putMore(ctx, s.Off, s.Data, 0, i < len(pieces)-1); err != nil {
			r.sendRest()
			return err
		}
	}
	return nil
}

// WriteAt is Put, for io.WriterAt: it does not end by a context.
func (r *Remote) WriteAt(p []byte, off int64) (n int, err error) {
	if err := r.Put(context.Background(), off, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ReadAt is Get, for io.ReaderAt: it does not end by a context.
func (r *Remote) ReadAt(p []byte, off int64) (n int, err error) {
	if err := r.Get(context.Background(), off, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (r *Remote) put(ctx context.Context, off int64, p []byte, flags byte) error {
	return r.putMore(ctx, off, p, flags, false)
}

// putMore is put that sends what does not fill a frame later, if more is to come.
func (r *Remote) putMore(ctx context.Context, off int64, p []byte, flags byte, more bool) error {
	if err := checkOffset(off); err != nil {
		return err
	}
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.key.Node == d.ep.Node() {
		return d.putHere(r.key, uint64(off), p, flags)
	}
	to, err := d.to(r.key.Node)
	if err != nil {
		return err
	}
	to.catchUp()
	now, turn := clock.Now(), to.turns.posted
	for first := true; first || len(p) > 0; first = false {
		var op opcode
		var n int
		for waited := false; ; waited = true {
			if err := to.ready(); err != nil {
				return err
			}
			op = to.putBy(r.key, uint64(off))
			if n = to.fits(op, turn, len(p)); n >= 0 {
				break
			}
			if !first && !waited {
				turn = to.turns.posted // it has used up the room, and comes anew
			}
			if err := to.awaitTurn(ctx, now, turn); err != nil {
				return err
			}
			now = clock.Now()
		}
		f := byte(0)
		if n == len(p) {
			f = flags | flagLast
		}
		to.putPart(now, op, r.key, uint64(off), p[:n], f)
		p, off = p[n:], off+int64(n)
		switch {
		case len(p) > 0:
			losses := to.losses
			now = to.pumpFull(now)
			to.catchUp()
			if to.losses != losses {
				return to.loss // what has begun cannot go on
			}
		case !more:
			to.pump(now)
		}
	}
	return nil
}

// putBy returns the opcode of a put: the short one if it goes on where the last one ended.
func (p *peer) putBy(k Key, off uint64) opcode {
	if c := &p.putTo; c.known && c.off == off && c.secret == k.Secret && c.id == k.ID {
		return opMore
	}
	return opPut
}

// putRecord writes a put.
func putRecord(b []byte, op opcode, k Key, off uint64, data []byte, flags byte) {
	w := op.begin(b, flags, len(data))
	if op == opPut {
		w.u16(k.ID)
		w.u64(k.Secret)
		w.u64(off)
	}
	copy(w.b, data)
}

// putPart puts a part of a Put into a frame that has room for it.
func (p *peer) putPart(now monotime.Time, op opcode, k Key, off uint64, data []byte, flags byte) {
	putRecord(p.conn.Reserve(now, reliable.Requests, op.size(len(data))), op, k, off, data, flags)
	p.putTo = cursor{k.ID, k.Secret, off + uint64(len(data)), true}
	p.done++
}

// fits returns how many of n bytes of data go into the next record, or a negative number if there is no room or it is others' turn. It
// does not make parts that are small because little is left in a frame.
func (p *peer) fits(op opcode, turn uint64, n int) int {
	if !p.isTurn(turn) {
		return -1
	}
	return p.fitsParcel(op, n)
}

func (p *peer) fitsParcel(op opcode, n int) int {
	const small = 256
	room := p.conn.Available(reliable.Requests, op.size(min(n, small)))
	if room == 0 {
		return -1
	}
	return min(n, room-op.size(0))
}

// to returns the peer with that number. The caller holds mu.
func (d *Domain) to(node mcd.NodeID) (*peer, error) {
	if d.closed {
		return nil, ErrClosed
	}
	if p := d.peer(node); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("node %d: %w", node, mcd.ErrUnknownNode)
}

// putHere is a Put into this node's own window. The caller holds mu.
func (d *Domain) putHere(k Key, off uint64, data []byte, flags byte) error {
	if d.closed {
		return ErrClosed
	}
	w, refusal := d.check(k.ID, k.Secret, off, uint64(len(data)), Write)
	if refusal != 0 {
		return &AccessError{Node: k.Node, ID: k.ID, Reason: refusal, Count: 1}
	}
	w.write(off, data)
	w.changed(flags&flagNotify != 0)
	return nil
}

// Get copies bytes of the remote window, from offset off on, into p. Errors: ErrAccess, ErrPeerDown, mcd.ErrUnknownNode,
// ErrClosed, the context's.
func (r *Remote) Get(ctx context.Context, off int64, p []byte) error {
	if len(p) > math.MaxInt32 {
		return fmt.Errorf("get of %d bytes: %w (at most %d)", len(p), ErrTooLarge, math.MaxInt32)
	}
	_, err := r.call(ctx, opGet, off, 0, 0, p)
	return err
}

// FetchAdd adds delta to the word of 8 bytes at offset off, and returns what it was before. Words are this machine's uint64 at the
// owner; all nodes must have one byte order. Errors: as for Get; ErrAccess, too, if off is not a multiple of 8.
func (r *Remote) FetchAdd(ctx context.Context, off int64, delta uint64) (old uint64, err error) {
	return r.call(ctx, opAdd, off, delta, 0, nil)
}

// Swap writes v to the word at offset off, and returns what it was before. Errors as for FetchAdd.
func (r *Remote) Swap(ctx context.Context, off int64, v uint64) (old uint64, err error) {
	return r.call(ctx, opSwap, off, v, 0, nil)
}

// CompareSwap writes v to the word at offset off if that is expected, and returns what it was before: if old is expected, v is there
// now. Errors as for FetchAdd.
func (r *Remote) CompareSwap(ctx context.Context, off int64, expected, v uint64) (old uint64, err error) {
	return r.call(ctx, opCompare, off, v, expected, nil)
}

// call does what waits for an answer.
func (r *Remote) call(ctx context.Context, op opcode, off int64, operand, expected uint64, buf []byte) (uint64, error) {
	if err := checkOffset(off); err != nil {
		return 0, err
	}
	d := r.d
	d.mu.Lock()
	if r.key.Node == d.ep.Node() {
		defer d.mu.Unlock()
		return d.callHere(r.key, op, uint64(off), operand, expected, buf)
	}
	p, err := d.to(r.key.Node)
	d.mu.Unlock()
	if err != nil {
		return 0, err
	}
	c, err := p.ask(ctx, op, r.key, uint64(off), operand, expected, buf, nil)
	if err != nil {
		return 0, err
	}
	return p.answer(ctx, c)
}

// callHere is a call to this node itself. The caller holds mu.
func (d *Domain) callHere(k Key, op opcode, off, operand, expected uint64, buf []byte) (uint64, error) {
	if d.closed {
		return 0, ErrClosed
	}
	n, right := uint64(8), Atomic
	if op == opGet {
		n, right = uint64(len(buf)), Read
	}
	w, refusal := d.check(k.ID, k.Secret, off, n, right)
	if refusal == 0 && op != opGet && off%8 != 0 {
		refusal = Misaligned
	}
	if refusal != 0 {
		return 0, &AccessError{Node: k.Node, ID: k.ID, Reason: refusal, Count: 1}
	}
	if op == opGet {
		w.read(buf, off)
		return 0, nil
	}
	var b [8]byte
	rest := writer{b[:]}
	rest.u64(expected)
	old := w.operate(op, off, operand, reader{b[:]})
	w.changed(false)
	return old, nil
}

// Push appends a record to the remote FIFO. It returns when rec may be reused; a FIFO that is full holds up this node's
// further operations on its owner, and so in the end Push. Records of one node come in order, behind what it Put before.
//
// To a FIFO of this node itself, Push is TryPush. Errors as for Put, but the context does not end a Push that has begun to send
// a record of several frames; ErrTooLarge for a record of more than MaxRecord bytes; one that is longer than the FIFO
// takes (NewFIFO) is refused as OutOfRange, which Flush tells.
//
// Source: MBCF §2.2.
func (r *Remote) Push(ctx context.Context, rec []byte) error {
	return r.push(ctx, rec, false)
}

// PushBatch appends records, which share frames. If it fails, those before the one that did are under way.
func (r *Remote) PushBatch(ctx context.Context, recs ...[]byte) error {
	for i, rec := range recs {
		if err := r.push(ctx, rec, i < len(recs)-1); err != nil {
			r.sendRest()
			return err
		}
	}
	return nil
}

func (r *Remote) push(ctx context.Context, rec []byte, more bool) error {
	if len(rec) > MaxRecord {
		return fmt.Errorf("push of %d bytes: %w (at most %d)", len(rec), ErrTooLarge, MaxRecord)
	}
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.key.Node == d.ep.Node() {
		return d.pushHere(r.key, rec)
	}
	to, err := d.to(r.key.Node)
	if err != nil {
		return err
	}
	return to.push(ctx, r.key, rec, more)
}

// push puts a record into frames, a part in each. The caller holds d.mu.
func (p *peer) push(ctx context.Context, k Key, rec []byte, more bool) error {
	now, turn := clock.Now(), p.turns.posted
	for flags, rest := byte(flagFirst), rec; ; flags = 0 {
		// A record that has begun has to be ended, or no other could be: the context ends only those that have not.
		wait := ctx
		if flags == 0 {
			wait = context.WithoutCancel(ctx)
		}
		n, err := p.awaitPart(wait, &now, &turn, flags == 0, len(rest))
		if err != nil {
			p.endPush(flags == 0)
			return err
		}
		if n == len(rest) {
			flags |= flagLast
		}
		w := opPush.begin(p.conn.Reserve(now, reliable.Requests, opPush.size(n)), flags, n)
		w.u16(k.ID)
		w.u64(k.Secret)
		w.u32(uint32(len(rec)))
		copy(w.b, rest)
		rest = rest[n:]
		p.done++
		if len(rest) == 0 {
			if !more {
				p.pump(now)
			}
			p.endPush(flags&flagFirst == 0)
			return nil
		}
		p.pushing = true
		now = p.pumpFull(now)
	}
}

// awaitPart waits until there is room for a part of a record, and returns how much of it fits: a record of several parts is not
// interrupted by others. The caller holds d.mu, which is free meanwhile.
func (p *peer) awaitPart(ctx context.Context, now *monotime.Time, turn *uint64, begun bool, left int) (int, error) {
	for waited := false; ; waited = true {
		if err := p.ready(); err != nil {
			return 0, err
		}
		var err error
		if !begun && p.pushing { // it is nobody's turn who waits for this: the record that has begun may be behind parcels
			err = p.awaitRoom(ctx, *now)
		} else {
			if n := p.fits(opPush, *turn, left); n >= 0 {
				return n, nil
			}
			if begun && !waited {
				*turn = p.turns.posted // it has used up the room, and comes anew
			}
			err = p.awaitTurn(ctx, *now, *turn)
		}
		if err != nil {
			return 0, err
		}
		*now = clock.Now()
	}
}

// endPush lets other records go, if this one had several parts.
func (p *peer) endPush(parts bool) {
	if parts {
		p.pushing = false
		p.room.wake(nil)
	}
}

// sendRest sends what was to share a frame with more.
func (r *Remote) sendRest() {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if p := r.d.peer(r.key.Node); p != nil {
		p.pump(clock.Now())
	}
}

// TryPush is Push that does not wait for room: it asks, and returns ErrFull if there was none. The record has to fit a frame
// (ErrTooLarge); refusals come back at once (ErrAccess).
func (r *Remote) TryPush(ctx context.Context, rec []byte) error {
	d := r.d
	if most := d.size - reliable.HeaderLen - opTry.size(0); len(rec) > most {
		return fmt.Errorf("try to push %d bytes: %w (at most %d)", len(rec), ErrTooLarge, most)
	}
	d.mu.Lock()
	if r.key.Node == d.ep.Node() {
		defer d.mu.Unlock()
		return d.pushHere(r.key, rec)
	}
	p, err := d.to(r.key.Node)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	c, err := p.ask(ctx, opTry, r.key, 0, 0, 0, nil, rec)
	if err != nil {
		return err
	}
	_, err = p.answer(ctx, c)
	return err
}
