package memfifo

import (
	"slices"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/clock"
)

// A push that finds no room in its FIFO holds up the requests of its sender. The senders that are
// held wait in a queue. Room is for the first one alone: for one record, and then it is the next
// one's turn.
//
//	pop ──> room ──> [ a | b | c ] ──> a's record ──> [ b | c | a ]

// holdQueue is the senders that wait for room in a FIFO. Domain.mu guards it; the count may be read
// without.
type holdQueue struct {
	peers  []*peer
	count  atomic.Int32
	served bool // the first one has had its turn
}

// admits reports whether room is for a sender; nil is this node itself.
func (q *holdQueue) admits(p *peer) bool {
	first := q.first()
	return first == nil || first == p && !(q.served && len(q.peers) > 1)
}

// first returns the sender whose turn it is, or nil.
func (q *holdQueue) first() *peer {
	if len(q.peers) == 0 {
		return nil
	}
	return q.peers[0]
}

func (q *holdQueue) push(p *peer) {
	q.peers = append(q.peers, p)
	q.count.Store(int32(len(q.peers)))
}

func (q *holdQueue) remove(p *peer) {
	if i := slices.Index(q.peers, p); i >= 0 {
		q.peers = slices.Delete(q.peers, i, i+1)
		q.count.Store(int32(len(q.peers)))
	}
}

// hold lists a sender whose record found no room. It returns false if room was made meanwhile, by a
// pop that did not see the sender listed: then the record is to be tried again.
func (f *FIFO) hold(p *peer) bool {
	first := f.senders.first()
	if first != p {
		f.senders.push(p)
	}
	if f.senders.first() == p && f.senders.admits(p) && f.ring.madeRoom() {
		if first == nil {
			f.senders.remove(p)
		}
		return false
	}
	p.heldBy = f
	return true
}

// resume lets held senders go on in turn, while there is room.
func (f *FIFO) resume() {
	if f.d.closed {
		return
	}
	now := clock.Now()
	var turn *peer
	defer func() {
		if turn != nil { // a handler that takes what is behind its record has not returned
			f.senders.remove(turn)
			f.resume()
		}
	}()
	for p := f.senders.first(); p != nil; p = f.senders.first() {
		p.heldBy, f.senders.served = nil, false
		turn = p
		p.resume()
		turn = nil
		if p.heldBy == f && !f.senders.served {
			return // there is no room for its record yet
		}
		f.senders.remove(p)
		if p.heldBy == f {
			f.senders.push(p)
		}
		p.pump(now)
	}
}

// unhold removes a sender that has failed: room is the next one's.
func (f *FIFO) unhold(p *peer) {
	p.heldBy = nil
	f.senders.remove(p)
	f.resume()
}
