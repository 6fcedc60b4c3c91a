package memfifo

import (
	"time"

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
// encode runs wherever there may be room: in the caller that posts, and in the goroutine that
// takes an acknowledgement.
//
// Calls that wait have no order among each other, nor with one that begins meanwhile. Where
// thousands wait for room, each for one record, to wake one of them costs ten times its record. So
// few of them go on at a time, one for each wakeEvery, and those find the rest of the room when
// they come back with their next records, ahead of the queue: few wake-ups, of which each is worth
// many records. A call has its turn after wakeEvery for each one before it, or a round trip for
// each longestTurn of them.

// enqueue puts a work request behind those that wait.
func (p *peer) enqueue(wr *workRequest) {
	p.queue.PushBack(&wr.node, wr)
	p.came++
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
	return rq.op.Size(len(rq.data)) <= p.d.sendSize-reliable.HeaderLen
}

// passes reports whether a request that comes now goes ahead of a queue, as all of it has room,
// and counts it.
func (p *peer) passes(rq *request) bool {
	if !p.mayPass() || !p.fitsFrame(rq) || p.conn.Filled(reliable.Requests) >= reliable.Window-1 {
		return false
	}
	p.passed++
	return true
}

// nextTurn begins a turn of the queue, and returns how many of its puts and pushes of a frame or
// less go on: one, one more for each wakeEvery that none has used, and twice as many as the last
// time if those that were woken then have not come back: so many have not passed since, or it was
// one who never had to wait. The rest of the room is for callers that come. More acknowledgements
// are due then, and each of these is a turn.
func (p *peer) nextTurn(now monotime.Time) (calls int) {
	unused := now.Sub(p.turnAt) - time.Duration(p.woken)*wakeEvery
	unused = max(0, min(unused, longestTurn*wakeEvery))
	calls = 1 + int(unused/wakeEvery)
	if p.passed < p.woken || p.came <= 1 {
		calls = max(calls, min(2*p.woken, longestTurn))
	}
	p.turnAt, p.woken, p.passed, p.came = now.Add(-unused), 0, 0, 0
	return calls
}

// leavesRoom reports whether a work request waits although there may be room, as the queue has had
// its turn.
func (p *peer) leavesRoom(wr *workRequest, calls int) bool {
	return p.woken >= calls && !wr.op.HasReply() && p.mayPass() && p.fitsFrame(&wr.request)
}

// encodeQueued turns work requests into frames as far as there is room, and it is theirs. It
// returns true if it has stopped to send a full batch and more may follow; then it is called
// again.
func (p *peer) encodeQueued(now monotime.Time, calls int) (again bool) {
	for wr := p.queue.Front(); wr != nil && !p.leavesRoom(wr, calls); wr = p.queue.Front() {
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
		p.woken++
	}
	return false
}

// sendQueued encodes and sends what there is room for.
func (p *peer) sendQueued(now monotime.Time) {
	for calls := p.nextTurn(now); p.encodeQueued(now, calls); {
		now = clock.Now() // a batch takes 0.1 ms
	}
	p.pump(now)
}

// post does what has a reply, or queues it.
func (p *peer) post(what *request) *workRequest {
	wr := p.d.newRequest(p, what)
	if p.queue.Front() != nil && p.passes(what) && p.encode(wr) == whole {
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
// not, there is nothing to do but to wait, for the work request that send returns. The caller
// holds d.mu.
func (p *peer) send(what *request, more bool) *workRequest {
	first := p.queue.Front() == nil
	if first && p.encodeParts(what) == whole || !first && p.passes(what) && p.encodeWhole(what) {
		if !more && p.conn.NeedsPump() {
			p.pump(clock.Now())
		}
		return nil
	}
	wr := p.d.newRequest(p, what)
	wr.expectLocal()
	p.enqueue(wr)
	if first {
		p.begin(wr, more)
	} else if p.conn.NeedsPump() {
		p.pump(clock.Now()) // what has passed, with more to come
	}
	return wr
}

// begin encodes what there is room for of the first work request of the queue, and of those behind
// it.
func (p *peer) begin(wr *workRequest, more bool) {
	returned := false
	defer func() {
		if !returned { // a handler that runs in drainReceive panics, or ends the goroutine
			p.abandon(wr)
			p.sendQueued(clock.Now())
		}
	}()
	now := clock.Now()
	for calls := p.nextTurn(now); p.encodeQueued(now, calls); {
		p.drainReceive()
		now = clock.Now()
	}
	if wr.state == queued || !more {
		p.pump(now)
	}
	returned = true
}

// withdraw takes a work request out of the queue. Those behind it may have room now.
func (p *peer) withdraw(wr *workRequest) {
	p.dequeue(wr)
	p.sendQueued(clock.Now())
}
