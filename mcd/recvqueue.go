package mcd

// recvQueue is the posted descriptors, first in, first out.
type recvQueue struct{ head, tail *RecvDesc }

func (q *recvQueue) push(d *RecvDesc) {
	d.posted, d.next = true, nil
	if q.head == nil {
		q.head = d
	} else {
		q.tail.next = d
	}
	q.tail = d
}

func (q *recvQueue) pop() *RecvDesc {
	d := q.head
	if d != nil {
		q.head, d.next, d.posted = d.next, nil, false
	}
	return d
}

func (q *recvQueue) remove(d *RecvDesc) bool {
	if !d.posted {
		return false
	}
	for prev, at := (*RecvDesc)(nil), q.head; at != nil; prev, at = at, at.next {
		if at != d {
			continue
		}
		if prev == nil {
			q.head = d.next
		} else {
			prev.next = d.next
		}
		if q.tail == d {
			q.tail = prev
		}
		d.next, d.posted = nil, false
		return true
	}
	return false // it is posted to another port
}
