package mcd

import "sync/atomic"

// sendLane holds the descriptors that wait for one destination. Its methods are the queue's,
// whose mu guards it; waiting and held are read without.
type sendLane struct {
	waiting    atomic.Int32
	held       atomic.Bool
	head, tail *SendDesc
}

// push puts a descriptor at the end of its lane.
func (q *sendQueue) push(d *SendDesc) {
	d.completion.Reset()
	d.posted.Store(true)
	q.last++
	d.sequence, d.next = q.last, nil
	l := q.lane(d.neighbour)
	if l.head == nil {
		l.head = d
		if l != &q.many {
			q.lanes = append(q.lanes, l)
		}
	} else {
		l.tail.next = d
	}
	l.tail = d
	q.counted(l, 1)
}

// pop takes the first n descriptors out of a lane. A lane that is empty then stays in lanes until
// send.
func (q *sendQueue) pop(l *sendLane, n int) {
	for range n {
		d := l.head
		l.head, d.next = d.next, nil
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

// removeAll takes some descriptors out of a lane.
func (q *sendQueue) removeAll(l *sendLane, which func(*SendDesc) bool) (removed []*SendDesc) {
	at := &l.head
	l.tail = nil
	for d := l.head; d != nil; d = d.next {
		if which(d) {
			*at = d.next
			removed = append(removed, d)
			continue
		}
		l.tail, at = d, &d.next
	}
	for _, d := range removed {
		d.next = nil
		d.posted.Store(false)
	}
	q.counted(l, -len(removed))
	return removed
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
