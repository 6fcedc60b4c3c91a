package memfifo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
)

// Notify says when the owner of a window is notified of a parcel.
type Notify uint8

// When.
const (
	Never   Notify = iota
	OnFirst        // when the first frame's bytes are in place
	OnLast         // when all are
)

// Parcel is a Put that is posted, and sent without its caller: a work request. Its data belongs to
// the domain until Done (local completion), and the parcel itself until its remote completion. One
// goroutine may be in Wait at a time, and one, it or another, in WaitRemote.
//
// Source: CENJU §3.1 (parcels), §3.2 (notification flags).
type Parcel struct {
	To     *Remote
	Off    int64
	Data   []byte
	Notify Notify

	posted atomic.Bool // once, or more often
	wr     workRequest
}

// ErrPosted: the parcel is posted already.
var ErrPosted = errors.New("parcel is in use")

var (
	errNoRemote    = errors.New("parcel without a Remote in To")
	errOtherDomain = errors.New("parcel's Remote is of another domain")
)

// Post posts parcels, in order, and does not wait. Up to MaxParcels may be under way to a node;
// each is cut into frames as there is room. Those to one node land in order, and later operations
// behind them. If one cannot be posted, it and those after it are not, and the error says which:
// ErrPosted, ErrManyParcels, ErrPeerDown, mcd.ErrUnknownNode, ErrClosed; ErrAccess, if it is for
// memory of this node itself, and refused.
func (d *Domain) Post(parcels ...*Parcel) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, q := range parcels {
		if e := d.post(q); e != nil {
			err = fmt.Errorf("parcel %d: %w", i, e)
			break
		}
	}
	d.pumpPeers(clock.Now())
	return err
}

// hasRoom reports whether one more of so many that are under way may be posted.
func (p *peer) hasRoom(n int) error {
	if n >= MaxParcels {
		return fmt.Errorf("node %d: %w (%d: wait for some)", p.node, ErrManyParcels, MaxParcels)
	}
	return nil
}

// post queues a parcel, or puts it in place on this node itself.
func (d *Domain) post(q *Parcel) error {
	if err := q.check(d); err != nil {
		return err
	}
	wr := &q.wr
	if q.To.key.Node == d.ep.Node() {
		q.begin()
		_, err := d.executeHere(&wr.request)
		wr.complete(err)
		return err
	}
	p, err := d.target(q.To.key.Node)
	if err == nil {
		err = p.ready()
	}
	if err == nil {
		err = p.hasRoom(p.parcels)
	}
	if err != nil {
		return err
	}
	q.begin()
	p.parcels++
	p.enqueue(wr)
	p.pumpLater()
	return nil
}

// check says why a parcel cannot be posted.
func (q *Parcel) check(d *Domain) error {
	switch {
	case q == nil || q.To == nil:
		return errNoRemote
	case q.To.d != d:
		return errOtherDomain
	case q.wr.state == queued || q.wr.state == framed:
		return ErrPosted
	}
	return checkOffset(q.Off)
}

// begin makes the parcel's work request.
func (q *Parcel) begin() {
	q.wr.request = request{op: opPut, key: q.To.key, off: uint64(q.Off), data: q.Data, notify: q.Notify}
	q.wr.restart()
	q.wr.expectLocal()
	q.wr.expectRemote()
	q.posted.Store(true) // last: who waits has something to wait for
}

// Done reports whether the parcel's data may be changed (local completion).
func (q *Parcel) Done() bool { return q.wr.local.Done() }

// Wait returns when Done, or what has become of the parcel. One goroutine may wait. For a parcel
// that was never posted there is nothing to wait for: Wait returns nil.
func (q *Parcel) Wait(ctx context.Context) error { return q.await(ctx, &q.wr.local) }

// WaitRemote returns when the parcel's data is in place, or was refused, which Flush tells (remote
// completion). One goroutine may wait. For one that was never posted it returns nil.
func (q *Parcel) WaitRemote(ctx context.Context) error { return q.await(ctx, &q.wr.remote) }

func (q *Parcel) await(ctx context.Context, c *mcd.Completion) error {
	switch {
	case q.To == nil:
		return errNoRemote
	case !q.posted.Load():
		return nil
	}
	return q.To.d.await(ctx, c)
}
