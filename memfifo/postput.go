package memfifo

import (
	"errors"

	"github.com/rawlane/rawlane/internal/clock"
)

// PostedPut is a Put with a Push behind it that goes on without its caller: for a message, and what
// says that it is there. It may be used again once it is posted.
//
// Source: CENJU §3.2, where the last packet of a parcel has the flag that tells that the data is in
// place; MBCF §2.2, whose sender writes a message into its receive.
type PostedPut struct {
	Window Key
	Off    int64
	Data   []byte // the domain's until Sent is called
	Tail   Key    // of a FIFO or a Handler of the same node
	Record []byte // of MaxFrameRecord bytes at most; the caller's when PostPut returns

	// Sent is told, once, that Data may be reused (local completion), and that the record follows;
	// or, by ErrPeerDown or ErrClosed, that both may be lost. Without an error, what it returns is
	// posted next, for the same node; what is wrong with that its own Sent is told.
	//
	// It may run before PostPut returns, and always with the domain's lock held: it must return, be
	// brief, not wait, and may call nothing of the domain but Complete of a completion.
	Sent func(err error) (next *PostedPut)
}

var (
	errNoSent    = errors.New("posted put without Sent")
	errOtherNode = errors.New("posted put: the nodes of Window and Tail differ")
)

// PostPut posts a put. What the connection has room for is sent at once, and the rest as that is
// acknowledged; the record shares the last frame. Operations on one node land in the order of their
// calls.
//
// With an error nothing is posted, and Sent not called: ErrTooLarge, of the record; ErrManyParcels,
// if as many as MaxParcels are under way; ErrPeerDown, mcd.ErrUnknownNode, ErrClosed. On this node
// itself all is done at once, and there may be ErrAccess and, with Data in place, ErrFull. A
// refusal by another node is told by the next Flush.
func (d *Domain) PostPut(q *PostedPut) error {
	if err := q.check(d, q.Window); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.Window.Node == d.ep.Node() {
		return d.putHere(q)
	}
	p, err := d.target(q.Window.Node)
	if err != nil {
		return err
	}
	p.drainReceive()
	if err := p.ready(); err != nil {
		return err
	}
	if err := p.hasRoom(p.posts); err != nil {
		return err
	}
	p.postPut(q)
	p.sendQueued(clock.Now())
	return nil
}

// check says why it cannot be posted to the node of a key.
func (q *PostedPut) check(d *Domain, to Key) error {
	switch {
	case q.Sent == nil:
		return errNoSent
	case q.Tail.Node != to.Node || q.Window.Node != to.Node:
		return errOtherNode
	}
	if err := checkOffset(q.Off); err != nil {
		return err
	}
	return d.checkPost(q.Record)
}

func (q *PostedPut) requests() (put, push request) {
	return request{op: opPut, key: q.Window, off: uint64(q.Off), data: q.Data},
		request{op: opPush, key: q.Tail, data: q.Record, total: len(q.Record)}
}

// putHere puts, and pushes behind it, on this node itself, and what is posted next.
func (d *Domain) putHere(q *PostedPut) error {
	if err := d.putOneHere(q); err != nil {
		return err
	}
	for next := q.Sent(nil); next != nil; next = q.Sent(nil) {
		err := next.check(d, q.Window)
		if err == nil {
			err = d.putOneHere(next)
		}
		if err != nil {
			next.Sent(err)
			return nil
		}
		q = next
	}
	return nil
}

func (d *Domain) putOneHere(q *PostedPut) error {
	put, push := q.requests()
	_, err := d.executeHere(&put)
	if err == nil {
		_, err = d.executeHere(&push)
	}
	return err
}

// postPut queues a put, and right behind it a copy of the record, which nobody waits for.
func (p *peer) postPut(q *PostedPut) {
	put, push := q.requests()
	wr, tail := p.d.newRequest(p, &put), p.d.newRequest(p, &push)
	tail.copied = append(tail.copied[:0], push.data...)
	tail.data, tail.detached = tail.copied, true
	wr.sent, wr.detached = q.Sent, true
	p.enqueue(wr)
	p.enqueue(tail)
	p.posts++
}

// endPosted ends a posted put that is in no list any more, and posts what is next.
func (p *peer) endPosted(wr *workRequest, err error) {
	key, sent := wr.key, wr.sent
	p.posts--
	p.d.freeRequest(wr)
	next := sent(err)
	if next == nil || err != nil {
		return
	}
	if err := next.check(p.d, key); err != nil {
		next.Sent(err)
		return
	}
	p.postPut(next)
}

// dropPosted takes the posted puts that are not sent out of the queue, as the endpoint is closed.
func (p *peer) dropPosted() {
	for wr := p.queue.Front(); wr != nil; {
		next := wr.node.Next()
		if wr.sent != nil {
			tail := next
			next = tail.node.Next()
			p.dequeue(wr)
			p.dequeue(tail)
			p.d.freeRequest(tail)
			p.endPosted(wr, ErrClosed)
		}
		wr = next
	}
}
