package memfifo

import (
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Each peer has one send queue of work requests. Its head is turned into records as the connection
// has room, and those behind it wait.
//
//	caller ── push ──> [ wr 3 | wr 2 | wr 1 ] ── encode ──> frames ── pump ──> link
//	                                                        local completion: all of it is here
//
// encode runs wherever there may be room: in the caller that posts, and in the goroutine that takes
// an acknowledgement.
//
// Calls that wait have no order among each other, nor with one that begins meanwhile. Where
// thousands wait for room, each for one record, to wake one of them costs several times its record.
// So the queue takes a part of the room, and those that it wakes find the rest when they come back
// with their next records, ahead of the queue: few wake-ups, of which each is worth many records.

// encodeQueued turns work requests into frames as far as there is room, and it is theirs. It
// returns true if it has stopped to send a full batch and more may follow; then it is called again.
func (p *peer) encodeQueued(now monotime.Time) (again bool) {
	share := p.queueShare()
	for wr := p.queue.Front(); wr != nil; wr = p.queue.Front() {
		if p.conn.Filled(reliable.Requests) >= share && p.letsOthersPass() && p.isShort(&wr.request) {
			return false
		}
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

// queueShare returns how many frames of the window may be filled when short work requests leave the
// rest of it to callers that come. More acknowledgements are due then, and the queue goes on with
// each of these, by a frame at least.
func (p *peer) queueShare() int {
	filled := p.conn.Filled(reliable.Requests)
	return max(queueLeast, filled+(reliable.Window-filled+queuePart-1)/queuePart)
}

// letsOthersPass reports whether all work requests in the queue are of calls that wait, and none is
// in parts: no record of a call that comes now has to be behind theirs.
func (p *peer) letsOthersPass() bool {
	wr := p.queue.Front()
	return !wr.begun && !wr.detached && p.posts == 0 && p.parcels == 0
}

// isShort reports whether a put or push fits a frame.
func (p *peer) isShort(rq *request) bool {
	return !rq.op.hasReply() && rq.op.size(len(rq.data)) <= p.d.sendSize-reliable.HeaderLen
}

// encodeAtOnce puts a put or push into frames as far as there is room, if nobody waits for that. It
// returns true if all of it is there. Of those that wait it lets pass what is short, and whole.
func (p *peer) encodeAtOnce(rq *request) bool {
	if p.queue.Front() == nil {
		return p.encodeParts(rq) == whole
	}
	if !p.letsOthersPass() || !p.isShort(rq) || p.conn.Filled(reliable.Requests) >= reliable.Window-1 {
		return false
	}
	return p.encodeWhole(rq)
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
// full unsent. What fits the window needs no work request: it goes into frames at once. If it may
// not, there is nothing to do but to wait, for the work request that send returns. The caller holds
// d.mu.
func (p *peer) send(what *request, more bool) *workRequest {
	first := p.queue.Front() == nil
	if p.encodeAtOnce(what) {
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
