package mcd

import (
	"context"
	"runtime"
)

// Recv waits for the next message to the port, copies it into b, and returns its length and its
// sender. A *ShortBufferError (io.ErrShortBuffer) says that the message was longer than b, and how
// long. It ends early with the context's error, or ErrClosed.
func (p *Port) Recv(ctx context.Context, b []byte) (n int, from Addr, err error) {
	d := p.getDesc()
	d.Buf = b
	if err = p.PostRecv(d); err == nil {
		var got bool
		if got, err = p.await(ctx, d); got {
			n, from, err = d.N, d.From, d.Err()
		}
	}
	p.putDesc(d)
	return n, from, err
}

// await waits for the message of a posted descriptor, and reports whether there is one: one that
// came just as ctx ended counts. Without one the descriptor is taken back, also if the wait does
// not return, as another port's Receive function panics in it, or ends the goroutine.
func (p *Port) await(ctx context.Context, d *RecvDesc) (got bool, err error) {
	defer func() { got = d.Done() || !p.takeBack(d) }()
	return false, p.e.Await(ctx, &d.completion)
}

// look is await that polls once.
func (p *Port) look(d *RecvDesc) (got bool) {
	defer func() { got = d.Done() || !p.takeBack(d) }()
	if !d.Done() {
		p.e.Progress()
	}
	return false
}

// TryRecv is Recv that does not wait: it polls once, as Progress does. ok is false if there was no
// message.
func (p *Port) TryRecv(b []byte) (n int, from Addr, ok bool, err error) {
	d := p.getDesc()
	d.Buf = b
	if err = p.PostRecv(d); err == nil {
		if ok = p.look(d); ok {
			n, from, err = d.N, d.From, d.Err()
		}
	}
	p.putDesc(d)
	return n, from, ok, err
}

// PostRecv posts a buffer for one message, and does not wait. Buffers are filled in the order in
// which they were posted. ErrHandled if the port has a Receive function, ErrPosted (also while a
// message is on its way into the buffer), ErrClosed.
func (p *Port) PostRecv(d *RecvDesc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed.Load():
		return p.err()
	case p.opts.Receive != nil:
		return ErrHandled
	case d.port != nil && !d.Done():
		return ErrPosted
	}
	d.completion.Reset()
	d.port = p
	if m := p.backlog.pop(); m != nil {
		d.completion.Complete(d.fill(m))
		return nil
	}
	p.posted.PushBack(&d.node, d)
	return nil
}

// take removes a descriptor from the posted ones. It returns false if it was not among them.
func (p *Port) take(d *RecvDesc) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.posted.Remove(&d.node)
}

// takeBack takes a descriptor out of the posted ones, or, where a message is on its way into it,
// waits for the few nanoseconds until it is done, and returns false.
func (p *Port) takeBack(d *RecvDesc) bool {
	if p.take(d) {
		d.port = nil // it is not posted any more, and will not be done
		return true
	}
	for !d.Done() {
		runtime.Gosched()
	}
	return false
}

func (p *Port) getDesc() *RecvDesc {
	if d := p.spare.Swap(nil); d != nil {
		return d
	}
	return new(RecvDesc)
}

func (p *Port) putDesc(d *RecvDesc) {
	d.Buf = nil
	p.spare.Store(d)
}
