package mcd

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/hrtimer"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// sendQueue holds the posted descriptors of one link that were not sent yet. It is empty nearly
// always: the link takes what it is given.
//
// Each destination has a lane, in order. A lane whose head the link refuses, or that a Drain holds
// back, does not keep the others from going. All that is for groups or for all shares one lane,
// which keeps its place among the others: what was posted before a broadcast goes before it, and
// what was posted after it waits.
type sendQueue struct {
	count atomic.Int32 // of waiting descriptors, those of held lanes excepted

	mu    sync.Mutex  // guards what follows, and the lanes; the outer one of sendQueue.mu and outbox.mu
	lanes []*sendLane // those with waiting descriptors, many excepted; tried in turn
	many  sendLane
	held  int    // how many lanes are held
	full  bool   // the link has refused the last message
	last  uint64 // sequence number of the last descriptor that had to wait

	refused monotime.Time  // when the link has refused a message last
	timer   *hrtimer.Timer // of the next retry, in case that nobody makes progress; made when it is needed
	pause   time.Duration  // until then, if the link has taken nothing at the last one; zero: sendRetry
	precise bool           // timer is
	armed   bool           // timer runs
}

const (
	// sendRetry is how long a full link is left alone when nobody makes progress meanwhile: about
	// 40 frames.
	sendRetry = 50 * time.Microsecond
	// maxSendRetry bounds that for a link that takes nothing at one retry after the other, each
	// after twice the time: the retries of 1,000 endpoints, all to one receiver that is full, would
	// leave it no processor.
	maxSendRetry = time.Millisecond
	// flushPause is how long it is left alone where goroutines spin, and would ask it a million
	// times a second: it takes a few frames in that time.
	flushPause = 5 * time.Microsecond
	// maxRefusals is how many lanes a link may refuse before it counts as full. A link to the
	// kernel refuses all; the in-memory fabric refuses what its receiver has no room for.
	maxRefusals = 4
)

// errHeld: a Drain holds back messages to the destination. It is transport.ErrBusy.
var errHeld = fmt.Errorf("a drain is under way: %w", transport.ErrBusy)

// lane returns the lane of messages to a neighbour or, if n is nil, to many.
func (q *sendQueue) lane(n *neighbour) *sendLane {
	if n == nil {
		return &q.many
	}
	return &n.lane
}

// admit reports whether a message may go ahead of what waits: to a neighbour or, if n is nil, to
// many.
func (q *sendQueue) admit(n *neighbour) error {
	l := q.lane(n)
	switch {
	case l.held.Load():
		return errHeld
	case l.waiting.Load() > 0, q.many.waiting.Load() > 0, n == nil && q.count.Load() > 0:
		return transport.ErrBusy
	}
	return nil
}

// post sends descriptors of one port, at most a batch, or lets them wait.
func (q *sendQueue) post(ds []*SendDesc) {
	q.mu.Lock()
	defer q.unlock()
	if ds[0].port.closed.Load() {
		finish(ds, ds[0].port.err())
		return
	}
	for len(ds) > 0 && q.held == 0 && q.count.Load() == 0 {
		done, busy, err := transmitPosted(ds)
		finishBatch(ds[:done], err)
		ds = ds[done:]
		if busy {
			break
		}
	}
	if len(ds) == 0 {
		return
	}
	for _, d := range ds {
		q.push(d)
	}
	if q.held > 0 || len(q.lanes) > 1 { // others may go
		q.send()
	}
}

// flush tries to send what waits, unless another goroutine has the lock, or the link has just
// refused a message.
func (q *sendQueue) flush() {
	if q.count.Load() == 0 || !q.mu.TryLock() {
		return
	}
	defer q.unlock()
	if !q.full || clock.Now().Sub(q.refused) >= flushPause {
		q.send()
	}
}

// retry is the timer's flush. It waits for the lock: not every holder tries to send.
func (q *sendQueue) retry() {
	q.mu.Lock()
	defer q.unlock()
	q.armed = false
	q.pause = min(2*max(q.pause, sendRetry), maxSendRetry)
	q.send()
}

// unlock gives mu back. If something waits that may go, a retry follows.
func (q *sendQueue) unlock() {
	if q.count.Load() > 0 && !q.armed {
		q.armed = true
		if q.timer == nil {
			q.timer = hrtimer.New(q.precise, q.retry) // stopped by stop
		}
		q.timer.Reset(max(q.pause, sendRetry))
	}
	q.mu.Unlock()
}

// send gives the link what waits, until it refuses.
func (q *sendQueue) send() {
	for q.sendLanes() && q.many.descs.Front() != nil && q.sendMany() {
	}
}

// sendLanes gives the link what waits in lanes and was posted before what is for many. It reports
// whether the link took all of that.
func (q *sendQueue) sendLanes() bool {
	limit := uint64(math.MaxUint64)
	if q.many.descs.Front() != nil {
		limit = q.many.descs.Front().sequence
	}
	var refusing [2][maxRefusals]*sendLane
	none, some := refusing[0][:0], refusing[1][:0] // those of which none was taken, or some
	kept := q.lanes[:0]
	for _, l := range q.lanes {
		waited := l.waiting.Load()
		switch {
		case len(none)+len(some) < maxRefusals && !l.held.Load() && !q.sendLane(l, limit):
			if l.waiting.Load() == waited {
				none = append(none, l)
			} else {
				some = append(some, l)
			}
		case l.descs.Front() != nil:
			kept = append(kept, l)
		}
	}
	clear(q.lanes[len(kept):])
	q.lanes = append(append(kept, none...), some...) // those that had least are tried first next time
	return len(none)+len(some) == 0
}

// sendMany gives the link what waits for many and was posted before what waits in lanes. It reports
// whether the link took all of that.
func (q *sendQueue) sendMany() bool {
	limit := uint64(math.MaxUint64)
	for _, l := range q.lanes {
		if !l.held.Load() {
			limit = min(limit, l.descs.Front().sequence)
		}
	}
	return q.sendLane(&q.many, limit)
}

// sendLane gives the link the descriptors of a lane whose sequence numbers are below limit. It
// returns false if the link refused one. A link that was full is tried with one message: each of
// many senders tries, and a batch costs its encoding.
func (q *sendQueue) sendLane(l *sendLane, limit uint64) bool {
	var batch [sendBatch]*SendDesc
	for {
		n, most := 0, sendBatch
		if q.full {
			most = 1
		}
		first := l.descs.Front()
		for d := first; d != nil && n < most && d.sequence < limit && d.port == first.port; d = d.node.Next() {
			batch[n] = d
			n++
		}
		if n == 0 {
			return true
		}
		done, busy, err := transmitPosted(batch[:n])
		if done > 0 {
			q.pause = 0
		}
		q.pop(l, done) // before its owners may use them again
		finishBatch(batch[:done], err)
		q.full = busy
		if busy {
			q.refused = clock.Now()
			return false
		}
	}
}

// remove takes a descriptor back. It returns false if it does not wait any more.
func (q *sendQueue) remove(d *SendDesc) bool {
	q.mu.Lock()
	defer q.unlock()
	if !d.posted.Load() {
		return false
	}
	q.take(q.lane(d.neighbour), d)
	q.compact()
	return true
}

// drop fails the waiting descriptors of a port that was closed.
func (q *sendQueue) drop(p *Port, cause error) {
	q.mu.Lock()
	defer q.unlock()
	for _, l := range append(slices.Clip(q.lanes), &q.many) {
		finish(q.takeAll(l, p), cause)
	}
	q.compact()
}

// compact takes the empty lanes out of lanes.
func (q *sendQueue) compact() {
	q.lanes = slices.DeleteFunc(q.lanes, func(l *sendLane) bool { return l.descs.Front() == nil })
}

// why says what a descriptor waits for.
func (q *sendQueue) why(d *SendDesc) string {
	if q.lane(d.neighbour).held.Load() {
		return "a drain is under way"
	}
	if d.neighbour != nil && q.many.waiting.Load() > 0 {
		return "one to a group or to all waits before it"
	}
	return fmt.Sprintf("link %s has no room", transport.Name(d.port.e.nics[d.NIC].link))
}

// stop ends the retries. Nothing is posted any more.
func (q *sendQueue) stop() {
	q.mu.Lock()
	timer := q.timer
	q.mu.Unlock()
	if timer != nil {
		timer.Stop() // which waits for a retry, and that for the lock
	}
}
