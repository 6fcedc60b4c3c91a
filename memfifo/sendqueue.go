package memfifo

import (
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Each peer has one send queue of work requests. Its order is the only rule of who is next: the
// head is turned into records as the connection has room, and those behind it wait.
//
//	caller ── push ──> [ wr 3 | wr 2 | wr 1 ] ── encode ──> frames ── pump ──> link
//	                                                        local completion: all of it is here
//
// encode runs wherever there may be room: in the caller that posts, and in the goroutine that takes
// an acknowledgement.

// encodeQueued turns work requests into frames as far as there is room. It returns true if it has
// stopped to send a full batch and more may follow; then it is called again.
func (p *peer) encodeQueued(now monotime.Time) (again bool) {
	for wr := p.queue.Front(); wr != nil; wr = p.queue.Front() {
		switch p.encode(wr) {
		case noRoom:
			return false
		case batchFull:
			p.pump(now)
			return true
		}
		p.queue.PopFront()
		if wr.signalRemote && !wr.op.hasReply() {
			wr.mark = p.conn.Mark(reliable.Requests)
			p.unacked.PushBack(&wr.node, wr)
		}
		wr.setFramed() // which may free it
	}
	return false
}

// sendQueued encodes and sends what there is room for.
func (p *peer) sendQueued(now monotime.Time) {
	for p.encodeQueued(now) {
		now = clock.Now() // a batch takes 0.1 ms
	}
	p.pump(now)
}

// post queues what has a reply.
func (p *peer) post(what *request) *workRequest {
	wr := p.d.newRequest(p, what)
	p.queue.PushBack(&wr.node, wr)
	p.sendQueued(clock.Now())
	return wr
}

// send does a put or push as far as there is room. With more to come it leaves a frame that is not
// full unsent. What fits the window needs no work request: it goes into frames at once if none is
// queued before it. If one is, there was no room for that: then there is nothing to do but to wait,
// for the work request that send returns. The caller holds d.mu.
func (p *peer) send(what *request, more bool) *workRequest {
	first := p.queue.Front() == nil
	if first && p.encodeParts(what) == whole {
		if !more && p.conn.NeedsPump() {
			p.pump(clock.Now())
		}
		return nil
	}
	wr := p.d.newRequest(p, what)
	p.queue.PushBack(&wr.node, wr)
	if first {
		p.begin(wr, more)
	}
	wr.expectLocal()
	if wr.state != queued {
		wr.local.Complete(wr.err)
	}
	return wr
}

// begin encodes what there is room for of the first work request of the queue, and of those behind
// it.
func (p *peer) begin(wr *workRequest, more bool) {
	returned := false
	defer func() {
		if !returned { // a handler that runs in drainReceive panics, or ends the goroutine
			p.leave(wr)
		}
	}()
	now := clock.Now()
	for p.encodeQueued(now) {
		p.drainReceive()
		now = clock.Now()
	}
	if wr.state == queued || !more {
		p.pump(now)
	}
	returned = true
}

// leave takes a put or push back whose caller waits no more, and is to have its memory again.
func (p *peer) leave(wr *workRequest) {
	switch {
	case wr.state == queued && wr.isPartOfRecord():
		wr.detach()
		p.sendQueued(clock.Now())
		return
	case wr.state == queued:
		p.withdraw(wr)
	}
	p.d.freeRequest(wr)
}

// withdraw takes a work request out of the queue. Those behind it may have room now.
func (p *peer) withdraw(wr *workRequest) {
	p.queue.Remove(&wr.node)
	p.sendQueued(clock.Now())
}
