package mcd

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// PostSend posts descriptors, in order, and does not wait. Those for which the link has room are done when it
// returns, several in one call of the link; the rest follow as soon as there is room. If a descriptor cannot
// be sent at all (ErrUnknownNode, ErrSelf, ErrTooLarge, ErrPosted), none is posted, and the error says which.
//
// Source: MCD §2.2.
func (p *Port) PostSend(ds ...*SendDesc) error {
	for i, d := range ds {
		if d.posted.Load() {
			return fmt.Errorf("descriptor %d: %w", i, ErrPosted)
		}
		if err := p.check(d.NIC, d.To, len(d.Payload)); err != nil {
			return fmt.Errorf("descriptor %d: %w", i, err)
		}
	}
	for _, d := range ds {
		d.port = p
	}
	for len(ds) > 0 {
		n := sameLink(ds)
		p.e.queues[ds[0].NIC].post(ds[:n])
		ds = ds[n:]
	}
	return nil
}

// sameLink returns how many of the first descriptors, at most a batch, go by the first one's link.
func sameLink(ds []*SendDesc) int {
	n := 1
	for n < len(ds) && n < sendBatch && ds[n].NIC == ds[0].NIC {
		n++
	}
	return n
}

// sendQueue holds the posted descriptors of one link that are not sent yet, in order. It is empty nearly
// always: the link takes what it is given.
type sendQueue struct {
	nic   int
	count atomic.Int32

	mu      sync.Mutex // guards what follows; the outer one of sendQueue.mu and outbox.mu
	waiting []*SendDesc
	timer   *time.Timer // tries again, in case that nobody makes progress
	closed  bool
}

// sendRetry is how long a full link is left alone when nobody makes progress meanwhile: about 40 frames.
const sendRetry = 50 * time.Microsecond

func (q *sendQueue) busy() bool { return q.count.Load() > 0 }

// post sends the descriptors behind those that wait already, or lets them wait too.
func (q *sendQueue) post(ds []*SendDesc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		finish(ds, ErrClosed)
		return
	}
	if len(q.waiting) == 0 {
		ds = ds[q.send(ds):]
	}
	for _, d := range ds { // only those that wait: what is sent at once goes from done to done
		d.completion.Reset()
		d.posted.Store(true)
	}
	q.waiting = append(q.waiting, ds...)
	q.rest()
}

// flush tries to send what waits.
func (q *sendQueue) flush() {
	if !q.busy() || !q.mu.TryLock() { // who has the lock is at it
		return
	}
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		n := q.send(q.waiting[:min(len(q.waiting), sendBatch)])
		if n == 0 {
			break
		}
		q.waiting = append(q.waiting[:0], q.waiting[n:]...)
	}
	q.rest()
}

// rest notes how many wait, and sees to it that they are tried again.
func (q *sendQueue) rest() {
	q.count.Store(int32(len(q.waiting)))
	if len(q.waiting) == 0 || q.closed {
		return
	}
	if q.timer == nil {
		q.timer = time.AfterFunc(sendRetry, q.flush) // stopped by fail
		return
	}
	q.timer.Reset(sendRetry)
}

// send gives descriptors to the link, and returns how many are done: sent or failed.
func (q *sendQueue) send(ds []*SendDesc) int {
	done := 0
	for done < len(ds) {
		p := ds[done].port
		run := samePort(ds[done:])
		sent, err := p.transmitAll(q.nic, run)
		finish(run[:sent], nil)
		done += sent
		if errors.Is(err, transport.ErrBusy) {
			break
		}
		if err != nil {
			finish(ds[done:done+1], err)
			done++
		}
	}
	return done
}

func samePort(ds []*SendDesc) []*SendDesc {
	n := 1
	for n < len(ds) && ds[n].port == ds[0].port {
		n++
	}
	return ds[:n]
}

// transmitAll sends descriptors of this port, at most a batch, and returns how many the link took.
func (p *Port) transmitAll(nic int, ds []*SendDesc) (int, error) {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	for i, d := range ds {
		if err := p.encode(i, nic, d.To, d.Payload); err != nil {
			if i == 0 {
				return 0, err
			}
			return p.transmit(nic, i) // the rest comes again, and then this one is the first
		}
	}
	return p.transmit(nic, len(ds))
}

func finish(ds []*SendDesc, err error) {
	for _, d := range ds {
		if d.posted.Load() {
			d.posted.Store(false)
		} else if err == nil && d.Done() && d.Err() == nil {
			continue // used before, and sent at once again
		}
		d.completion.Complete(err)
	}
}

// fail ends what waits, and all that will be posted, with err.
func (q *sendQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	finish(q.waiting, err)
	q.waiting = nil
	q.count.Store(0)
}
