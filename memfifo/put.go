package memfifo

import (
	"context"
	"fmt"
	"io"

	"github.com/rawlane/rawlane/internal/clock"
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

// checkOffset refuses at once what no owner would take.
func checkOffset(off int64) error {
	if off < 0 {
		return fmt.Errorf("offset %d: want 0 or more", off)
	}
	return nil
}

// Put copies p into the remote window at byte offset off. It returns when p may be reused (local
// completion); the bytes are in place (remote completion) once a later Flush has returned. Puts
// from one node to one node land in order. A Put that is longer than a frame is cut.
//
// Errors: ErrPeerDown, mcd.ErrUnknownNode, ErrClosed, the context's: then some of it may have been
// written; and at once for an offset below 0. A refusal by the owner (ErrAccess: key, bounds or
// rights; nothing of the part concerned was written) is known only there, and comes back from the
// next Flush.
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
// are under way.
func (r *Remote) PutV(ctx context.Context, pieces ...Segment) error {
	for i, s := range pieces {
		if err := r.put(ctx, s.Off, s.Data, Never, i < len(pieces)-1); err != nil {
			r.sendRest()
			return err
		}
	}
	return nil
}

// WriteAt is Put, for io.WriterAt: no context ends it.
func (r *Remote) WriteAt(p []byte, off int64) (n int, err error) {
	if err := r.Put(context.Background(), off, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (r *Remote) put(ctx context.Context, off int64, p []byte, notify Notify, more bool) error {
	if err := checkOffset(off); err != nil {
		return err
	}
	return r.send(ctx, &request{op: opPut, key: r.key, off: uint64(off), data: p, notify: notify}, more)
}

// send does an operation that has no reply, and waits for its local completion. If more is to come,
// what does not fill a frame is sent later.
func (r *Remote) send(ctx context.Context, what *request, more bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.d.mu.Lock()
	err := r.d.send(ctx, what, more)
	r.d.mu.Unlock()
	return err
}

// send is Remote.send with mu held, which is free while it waits.
func (d *Domain) send(ctx context.Context, what *request, more bool) error {
	if what.key.Node == d.ep.Node() {
		return d.sendHere(what)
	}
	p, err := d.target(what.key.Node)
	if err != nil {
		return err
	}
	p.drainReceive()
	if err := p.ready(); err != nil {
		return err
	}
	return p.execute(ctx, what, more)
}

// sendRest sends what was to share a frame with more.
func (r *Remote) sendRest() {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if p := r.d.peer(r.key.Node); p != nil {
		p.pump(clock.Now())
	}
}
