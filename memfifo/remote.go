package memfifo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Remote is a window or FIFO whose key one has, on another node or on this one. It is a value to
// keep, and costs nothing.
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

// Key returns the key.
func (r *Remote) Key() Key { return r.key }

// Put copies p into the remote window at byte offset off. It returns when p may be reused (local
// completion); the bytes are in place (remote completion) once a later Flush has returned. Puts
// from one node to one node land in order. A Put that is longer than a frame is cut.
//
// Errors: ErrPeerDown, mcd.ErrUnknownNode, ErrClosed, the context's: then some of it may have been
// written; and at once for an offset below 0. A refusal by the owner (ErrAccess: key, bounds or
// rights; nothing of the part concerned was written) is known only there, and comes back from the
// next Flush; that of this node itself comes back at once, and from no Flush.
//
// Source: MBCF §2.1; cutting into segments: CENJU §3.1, §4.1.
func (r *Remote) Put(ctx context.Context, off int64, p []byte) error {
	return r.put(ctx, off, p, Never, false)
}

// PutNotify is Put that adds one to the window's notifications when all is in place: see
// Window.Wait.
func (r *Remote) PutNotify(ctx context.Context, off int64, p []byte) error {
	return r.put(ctx, off, p, OnLast, false)
}

// Signal adds one to the window's notifications, when all that this node did to the owner before is
// in place.
func (r *Remote) Signal(ctx context.Context) error { return r.put(ctx, 0, nil, OnLast, false) }

// Segment is a part of a vectored Put.
type Segment struct {
	Off  int64
	Data []byte
}

// PutV is a Put of several pieces, which share frames. If it fails, those before the one that did
// are under way; a *BatchError says how many these are.
func (r *Remote) PutV(ctx context.Context, pieces ...Segment) error {
	return r.each(0, len(pieces), func(i int, more bool) error {
		return r.put(ctx, pieces[i].Off, pieces[i].Data, Never, more)
	})
}

// WriteAt is Put, for io.WriterAt: no context ends it.
func (r *Remote) WriteAt(p []byte, off int64) (n int, err error) {
	if err := r.Put(context.Background(), off, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (r *Remote) put(ctx context.Context, off int64, p []byte, notify Notify, more bool) error {
	_, err := r.execute(ctx, off, &request{op: opPut, data: p, notify: notify}, more)
	return err
}

// Push appends a record to the remote FIFO. It returns when rec may be reused; a FIFO that is full
// holds up this node's further operations on its owner, and so in the end Push. Records of one node
// come in order, behind what it Put before.
//
// To a FIFO of this node itself, Push is TryPush. Errors as for Put, but a Push that has begun to
// send a record when the context ends has done so: the rest is copied, and follows by itself.
// ErrTooLarge for a record of more than MaxRecord bytes; one that is longer than the FIFO takes
// (NewFIFO) is refused as OutOfRange, which Flush tells.
//
// Source: MBCF §2.1.
func (r *Remote) Push(ctx context.Context, rec []byte) error { return r.push(ctx, rec, nil, false) }

// PushReconnect is Push for those who go on with a node that was down, as a Handler's Down tells:
// where no Flush has said so yet, it pushes once more, for the node's next incarnation. No Flush
// tells the loss then: it is for a domain in which none is waited for. If wanted is set, it says
// each time whether the record is for the incarnation that there is, with the domain's lock held,
// as a Handler's functions run; else the error is ErrPeerDown.
func (r *Remote) PushReconnect(ctx context.Context, rec []byte, wanted func() bool) error {
	err := r.push(ctx, rec, wanted, false)
	if !errors.Is(err, ErrPeerDown) || err == errUnwanted { //nolint:errorlint // the very value
		return err
	}
	r.d.forgetLoss(r.key.Node)
	if e := r.push(ctx, rec, wanted, false); e != errUnwanted { //nolint:errorlint // likewise
		return e
	}
	return err
}

// errUnwanted is that of a record which is for a former incarnation of its node.
var errUnwanted = fmt.Errorf("the record was for a node's former life: %w", ErrPeerDown)

// PushBatch appends records, which share frames. If it fails, those before the one that did are
// under way; a *BatchError says how many these are.
func (r *Remote) PushBatch(ctx context.Context, recs ...[]byte) error {
	done := 0
	if ctx.Err() == nil {
		done = r.pushTogether(recs)
	}
	return r.each(done, len(recs), func(i int, more bool) error { return r.push(ctx, recs[i], nil, more) })
}

// pushTogether puts the first records into frames, as many as the window has room for. It leaves to
// push what takes more: records of several frames, waits, errors.
func (r *Remote) pushTogether(recs [][]byte) (done int) {
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.key.Node == d.ep.Node() {
		return 0
	}
	p, err := d.target(r.key.Node)
	if err != nil {
		return 0
	}
	p.drainReceive()
	if p.ready() != nil || !p.mayPass() {
		return 0
	}
	for done < len(recs) {
		n := p.encodePushes(r.key, recs[done:])
		if n == 0 {
			break
		}
		done += n
		p.passed += n
		if done == len(recs) && p.conn.NeedsPump() || p.conn.BatchReady(reliable.Requests) {
			p.pump(clock.Now())
		}
	}
	return done
}

func (r *Remote) push(ctx context.Context, rec []byte, wanted func() bool, more bool) error {
	if len(rec) > MaxRecord {
		return fmt.Errorf("push of %d bytes: %w (at most %d)", len(rec), ErrTooLarge, MaxRecord)
	}
	_, err := r.execute(ctx, 0, &request{op: opPush, data: rec, total: len(rec), wanted: wanted}, more)
	return err
}

// checkOffset refuses at once what no owner would take.
func checkOffset(off int64) error {
	if off < 0 {
		return fmt.Errorf("offset %d: want 0 or more", off)
	}
	return nil
}

// execute does an operation, and waits for its reply, or its local completion if it has none. If
// more is to come, what does not fill a frame is sent later.
func (r *Remote) execute(ctx context.Context, off int64, what *request, more bool) (value uint64, err error) {
	if err := checkOffset(off); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	what.key, what.off = r.key, uint64(off)
	wr, value, err := r.d.start(what, more)
	if wr == nil {
		return value, err
	}
	return r.d.wait(ctx, wr)
}

// start does an operation as far as it may be done without waiting. The rest is in the work request
// that it returns, if there is one.
func (d *Domain) start(what *request, more bool) (wr *workRequest, value uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if what.key.Node == d.ep.Node() {
		value, err = d.executeHere(what)
		return nil, value, err
	}
	p, err := d.target(what.key.Node)
	if err != nil {
		return nil, 0, err
	}
	if !what.op.HasReply() {
		p.drainReceive()
	}
	if err := p.ready(); err != nil {
		return nil, 0, err
	}
	if what.wanted != nil && !what.wanted() {
		return nil, 0, errUnwanted
	}
	if what.op.HasReply() {
		return p.post(what), 0, nil
	}
	return p.send(what, more), 0, nil
}

// each does the operations from done to n, which share frames, until one fails. Then it sends what
// was to share a frame with more.
func (r *Remote) each(done, n int, do func(i int, more bool) error) error {
	for ; done < n; done++ {
		if err := do(done, done < n-1); err != nil {
			r.d.mu.Lock()
			defer r.d.mu.Unlock()
			if p := r.d.peer(r.key.Node); p != nil {
				p.pump(clock.Now())
			}
			return &BatchError{Done: done, Err: err}
		}
	}
	return nil
}
