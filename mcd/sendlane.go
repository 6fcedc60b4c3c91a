package mcd

import (
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/list"
)

// sendLane holds the descriptors that wait for one destination. Its methods are the queue's,
// whose mu guards it; waiting and held are read without.
type sendLane struct {
	waiting atomic.Int32
	held    atomic.Bool
	descs   list.List[SendDesc]
}

// push puts a descriptor at the end of its lane.
func (q *sendQueue) push(d *SendDesc) {
	d.completion.Reset()
	d.posted.Store(true)
	q.last++
	d.sequence = q.last
	l := q.lane(d.neighbour)
	if l != &q.many && l.descs.Front() == nil {
		q.lanes = append(q.lanes, l)
	}
	l.descs.PushBack(&d.node, d)
	q.counted(l, 1)
}

// pop takes the first n descriptors out of a lane. A lane that is empty then stays in lanes until
// send.
func (q *sendQueue) pop(l *sendLane, n int) {
	for range n {
		l.descs.PopFront()
	}
	q.counted(l, -n)
}

// counted notes that so many more descriptors wait in a lane.
func (q *sendQueue) counted(l *sendLane, n int) {
	l.waiting.Add(int32(n))
	if !l.held.Load() {
		q.count.Add(int32(n))
	}
}

// take takes a descriptor out of its lane.
func (q *sendQueue) take(l *sendLane, d *SendDesc) {
	l.descs.Remove(&d.node)
	d.posted.Store(false)
	q.counted(l, -1)
}

// takeAll takes a port's descriptors out of a lane.
func (q *sendQueue) takeAll(l *sendLane, p *Port) (taken []*SendDesc) {
	var next *SendDesc
	for d := l.descs.Front(); d != nil; d = next {
		next = d.node.Next()
		if d.port == p {
			q.take(l, d)
			taken = append(taken, d)
		}
	}
	return taken
}

// hold has a lane wait for release, or lets it go. The caller holds mu.
func (q *sendQueue) hold(l *sendLane, on bool) {
	if l.held.Load() == on {
		return
	}
	waiting := l.waiting.Load()
	if on {
		q.held++
		q.count.Add(-waiting)
	} else {
		q.held--
		q.count.Add(waiting)
	}
	l.held.Store(on) // last: a sender that is admitted then sees what waits
}
