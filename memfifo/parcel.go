package memfifo

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Notify says when a parcel's receiver is notified.
type Notify uint8

// When.
const (
	Never   Notify = iota
	OnFirst        // when the first frame's bytes are in place
	OnLast         // when all are
)

// Parcel is a Put that is posted, and sent without the caller. Its data belongs to the domain until Done (local completion), and
// the parcel itself until it is placed (remote completion). One goroutine may be in Wait at a time, and one, it or another, in WaitPlaced.
//
// Source: CENJU §3.1 (parcels), §3.3 (notification flags).
type Parcel struct {
	To     *Remote
	Off    int64
	Data   []byte
	Notify Notify

	posted bool // guarded by Domain.mu, as is what follows
	p      *peer
	at     int    // how much is in frames
	mark   uint32 // when all is: acknowledged once that is reached
	done   mcd.Completion
	placed mcd.Completion
}

// ErrPosted: the parcel is posted already.
var ErrPosted = errors.New("parcel is in use")

var errNoTo = errors.New("parcel without a Remote in To")

// Post posts parcels, in order, and does not wait. Any number may be posted; each is cut into frames as there is room.
// Those to one node land in order, and later operations behind them. If one cannot be posted, it and those after it are
// not, and the error says which: ErrPosted, ErrPeerDown, mcd.ErrUnknownNode, ErrClosed.
func (d *Domain) Post(parcels ...*Parcel) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := clock.Now()
	var last *peer // has parcels that were posted just now
	for i, q := range parcels {
		err := d.post(q)
		if last != nil && (err != nil || last != q.p) {
			last.advance(now)
		}
		if err != nil {
			return fmt.Errorf("parcel %d: %w", i, err)
		}
		last = q.p
	}
	if last != nil {
		last.advance(now)
	}
	return nil
}

func (d *Domain) post(q *Parcel) error {
	if q == nil || q.To == nil {
		return errNoTo
	}
	if q.To.d != d {
		return errors.New("parcel's Remote is of another domain")
	}
	if q.posted {
		return ErrPosted
	}
	if err := checkOffset(q.Off); err != nil {
		return err
	}
	q.at = 0
	q.done.Reset()
	q.placed.Reset()
	q.p = nil
	if q.To.key.Node == d.ep.Node() {
		flags := byte(0)
		if q.Notify != Never {
			flags = flagNotify
		}
		err := d.putHere(q.To.key, uint64(q.Off), q.Data, flags)
		q.end(err)
		return err
	}
	p, err := d.to(q.To.key.Node)
	if err == nil {
		err = p.ready()
	}
	if err != nil {
		return err
	}
	q.p, q.posted = p, true
	p.parcels = append(p.parcels, q)
	p.turns.posted++
	return nil
}

// sendParcels puts what is posted into frames as far as there is room, and nobody has waited for longer.
func (p *peer) sendParcels(now monotime.Time) {
	for len(p.parcels) > 0 && !p.callersTurn() {
		q := p.parcels[0]
		off := uint64(q.Off) + uint64(q.at)
		op := p.putBy(q.To.key, off)
		n := p.fitsParcel(op, len(q.Data)-q.at)
		if n < 0 {
			return
		}
		flags := byte(0)
		if q.at == 0 && q.Notify == OnFirst {
			flags |= flagNotify
		}
		last := q.at+n == len(q.Data)
		if last && q.Notify == OnLast {
			flags |= flagNotify
		}
		p.putPart(now, op, q.To.key, off, q.Data[q.at:q.at+n], flags)
		q.at += n
		if !last {
			now = p.pumpFull(now)
			continue
		}
		p.parcels = append(p.parcels[:0], p.parcels[1:]...)
		q.mark = p.conn.Mark(reliable.Requests)
		p.placing = append(p.placing, q)
		q.done.Complete(nil)
	}
}

// endPlaced completes the parcels that were acknowledged: at once, as what comes together with that may be a goodbye.
func (p *peer) endPlaced() {
	for len(p.placing) > 0 && p.conn.Acked(reliable.Requests, p.placing[0].mark) {
		q := p.placing[0]
		p.placing = append(p.placing[:0], p.placing[1:]...)
		q.end(nil)
	}
}

// end completes a parcel that will not be sent any further.
func (q *Parcel) end(err error) {
	q.posted = false
	if !q.done.Done() {
		q.done.Complete(err)
	}
	q.placed.Complete(err)
}

// Done reports whether the parcel's data may be changed (local completion).
func (q *Parcel) Done() bool { return q.done.Done() }

// Wait returns when Done, or what has become of the parcel. One goroutine may wait.
func (q *Parcel) Wait(ctx context.Context) error { return q.await(ctx, &q.done) }

// WaitPlaced returns when the parcel's data is in place, or was refused, which Flush tells (remote completion). One
// goroutine may wait.
func (q *Parcel) WaitPlaced(ctx context.Context) error { return q.await(ctx, &q.placed) }

func (q *Parcel) await(ctx context.Context, c *mcd.Completion) error {
	if q.To == nil {
		return errNoTo
	}
	return q.To.d.await(ctx, c)
}
