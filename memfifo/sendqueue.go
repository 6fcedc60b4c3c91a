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

// enqueue puts a work request behind those that wait.
func (p *peer) enqueue(wr *workRequest) {
	p.queue.PushBack(&wr.node, wr)
	if wr.isLeft() {
		p.left++
	}
}

// dequeue takes a work request out of the queue.
func (p *peer) dequeue(wr *workRequest) {
	if p.queue.Remove(&wr.node) && wr.isLeft() {
		p.left--
	}
}

// mayPass reports whether what comes now may go ahead of the queue: all in that is of calls that
// wait, and none is in parts.
func (p *peer) mayPass() bool {
	wr := p.queue.Front()
	return wr == nil || p.left == 0 && !wr.begun
}

// fitsFrame reports whether all of a request fits a frame.
func (p *peer) fitsFrame(rq *request) bool {
	return rq.op.size(len(rq.data)) <= p.d.sendSize-reliable.HeaderLen
}

// mayPassWhole reports whether a request that comes now may go ahead of a queue, and all of it has
// room.
func (p *peer) mayPassWhole(rq *request) bool {
	return p.mayPass() && p.fitsFrame(rq) && p.conn.Filled(reliable.Requests) < reliable.Window-1
}

// queueShare returns how many frames of the window may be filled when puts and pushes of a frame
// leave the rest of it to callers that come. More acknowledgements are due then, and the queue goes
// on with each of these, by a frame at least.
func (p *peer) queueShare() int {
	filled := p.conn.Filled(reliable.Requests)
	return max(queueLeast, filled+(reliable.Window-filled+queuePart-1)/queuePart)
}

// leavesRoom reports whether a work request waits although there may be room.
func (p *peer) leavesRoom(wr *workRequest, share int) bool {
	return p.conn.Filled(reliable.Requests) >= share && !wr.op.hasReply() && p.mayPass() && p.fitsFrame(&wr.request)
}

// encodeQueued turns work requests into frames as far as there is room, and it is theirs. It
// returns true if it has stopped to send a full batch and more may follow; then it is called again.
func (p *peer) encodeQueued(now monotime.Time, share int) (again bool) {
	for wr := p.queue.Front(); wr != nil && !p.leavesRoom(wr, share); wr = p.queue.Front() {
		switch p.encode(wr) {
		case noRoom:
			return false
		case batchFull:
			p.pump(now)
			return true
		}
		p.dequeue(wr)
		if wr.isParcel() {
			wr.mark = p.conn.Mark(reliable.Requests)
			p.unacked.PushBack(&wr.node, wr)
		}
		wr.setFramed() // which may free it
	}
	return false
}

// sendQueued encodes and sends what there is room for.
func (p *peer) sendQueued(now monotime.Time) {
	for share := p.queueShare(); p.encodeQueued(now, share); {
		now = clock.Now() // a batch takes 0.1 ms
	}
	p.pump(now)
}

// post does what has a reply, or queues it.
func (p *peer) post(what *request) *workRequest {
	wr := p.d.newRequest(p, what)
	if p.queue.Front() != nil && p.mayPassWhole(what) && p.encode(wr) == whole {
		wr.setFramed()
		p.pump(clock.Now())
		return wr
	}
	p.enqueue(wr)
	p.sendQueued(clock.Now())
	return wr
}

// send does a put or push as far as there is room. With more to come it leaves a frame that is not
// full unsent. What fits the window needs no work request: it goes into frames at once. If it may
// not, there is nothing to do but to wait, for the work request that send returns. The caller holds
// d.mu.
func (p *peer) send(what *request, more bool) *workRequest {
	first := p.queue.Front() == nil
	if first && p.encodeParts(what) == whole || !first && p.mayPassWhole(what) && p.encodeWhole(what) {
		if !more && p.conn.NeedsPump() {
			p.pump(clock.Now())
		}
		return nil
	}
	wr := p.d.newRequest(p, what)
	p.enqueue(wr)
	if first {
		p.begin(wr, more)
	} else if p.conn.NeedsPump() {
		p.pump(clock.Now()) // what has passed, with more to come
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
	for share := p.queueShare(); p.encodeQueued(now, share); {
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
	p.dequeue(wr)
	p.sendQueued(clock.Now())
}
