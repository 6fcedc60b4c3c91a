package mcd

import (
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// PostSend posts descriptors, in order, and does not wait. Those for which the link has room are
// done when it returns, several in one call of the link; the rest follow as soon as there is room.
// Messages to one destination keep their order; one that waits does not hold up others, but where
// it is for a group or for all. If a descriptor cannot be sent at all (no destination,
// ErrUnknownNode, ErrSelf, ErrTooLarge, ErrClosed; ErrPosted, also for one that is given twice),
// none is posted, and the error says which.
//
// Source: MCD §2.2.
func (p *Port) PostSend(ds ...*SendDesc) error {
	if p.closed.Load() {
		return p.err()
	}
	for i, d := range ds {
		if err := p.prepare(d); err != nil {
			for _, d := range ds[:i] {
				d.port, d.given = nil, false // it is not posted: there is nothing to wait for
			}
			return fmt.Errorf("descriptor %d: %w", i, err)
		}
	}
	for _, d := range ds {
		d.given = false // before its owner may post it again
	}
	for len(ds) > 0 {
		n := sameLink(ds)
		p.e.nics[ds[0].NIC].queue.post(ds[:n])
		ds = ds[n:]
	}
	return nil
}

// prepare makes a descriptor ready to be posted, or reports why it cannot be sent.
func (p *Port) prepare(d *SendDesc) error {
	if d.posted.Load() || d.given {
		return ErrPosted
	}
	n, err := p.target(d.NIC, d.To, len(d.Payload))
	if err == nil {
		d.port, d.neighbour, d.given = p, n, true
	}
	return err
}

// sameLink returns how many of the first descriptors, at most a batch, go by the first one's link.
func sameLink(ds []*SendDesc) int {
	n := 1
	for n < len(ds) && n < sendBatch && ds[n].NIC == ds[0].NIC {
		n++
	}
	return n
}

// transmitPosted gives descriptors of one port and link, at most a batch, to the link. It returns
// how many are done, the last of them with err, and whether the link has no room for the next one.
func transmitPosted(ds []*SendDesc) (done int, busy bool, err error) {
	p, nic := ds[0].port, ds[0].NIC
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	p.checkpoint(nic)
	for i, d := range ds {
		if i == 0 || d.To != ds[i-1].To {
			p.address(nic, d.To, d.neighbour)
		}
		p.out.copyIn(i, d.Payload)
	}
	done, err = p.transmit(nic, len(ds))
	switch {
	case err == nil:
		return done, false, nil
	case errors.Is(err, transport.ErrBusy):
		return done, true, nil
	}
	return done + 1, false, err
}

// finishBatch completes descriptors that are done, the last of them with err.
func finishBatch(ds []*SendDesc, err error) {
	if last := len(ds) - 1; last >= 0 {
		finish(ds[:last], nil)
		ds[last].finish(err)
	}
}

func finish(ds []*SendDesc, err error) {
	for _, d := range ds {
		d.finish(err)
	}
}

func (d *SendDesc) finish(err error) {
	if d.posted.Load() {
		d.posted.Store(false)
	} else if err == nil && d.Done() && d.Err() == nil {
		return // used before, and sent at once again
	}
	d.completion.Complete(err)
}
