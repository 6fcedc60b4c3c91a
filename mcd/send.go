package mcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// sendBatch is how many messages are given to a link at once. By then the cost of the call is
// shared well.
const sendBatch = 64

// Send sends b to a port of another node, over the first link. It returns when b may be reused;
// that is not to say that the message arrived. While the link has no room it waits, and so ends
// with ctx's error at the latest. ErrUnknownNode, ErrSelf, ErrTooLarge (nothing was sent),
// ErrClosed.
func (p *Port) Send(ctx context.Context, to Addr, b []byte) error {
	return p.SendVia(ctx, 0, To(to), b)
}

// Multicast sends b to a port of every other member of a group, over the first link. The sender
// need not be a member. Errors as for Send.
func (p *Port) Multicast(ctx context.Context, g GroupID, to PortID, b []byte) error {
	return p.SendVia(ctx, 0, ToGroup(g, to), b)
}

// Broadcast sends b to a port of every other node, over the first link. Errors as for Send.
func (p *Port) Broadcast(ctx context.Context, to PortID, b []byte) error {
	return p.SendVia(ctx, 0, ToAll(to), b)
}

// SendVia is Send to any destination over any link.
func (p *Port) SendVia(ctx context.Context, nic int, to Dest, b []byte) error {
	err := p.TrySend(nic, to, b)
	if err == nil || !errors.Is(err, transport.ErrBusy) {
		return err
	}
	return p.sendLater(ctx, nic, to, b)
}

// sendLater posts the message and waits until it was sent.
func (p *Port) sendLater(ctx context.Context, nic int, to Dest, b []byte) error {
	d, _ := p.e.spareDescs.Get().(*SendDesc)
	if d == nil {
		d = new(SendDesc)
	}
	d.To, d.Payload, d.NIC = to, b, nic
	err := p.PostSend(d)
	if err == nil {
		err = p.awaitSent(ctx, d)
	}
	d.Payload = nil
	p.e.spareDescs.Put(d)
	return err
}

// awaitSent waits until a posted descriptor was sent, or else takes it back: also if the wait does
// not return, as another port's Receive function panics in it, or ends the goroutine.
func (p *Port) awaitSent(ctx context.Context, d *SendDesc) (err error) {
	defer func() {
		if q := &p.e.nics[d.NIC].queue; !d.Done() && q.remove(d) {
			err = fmt.Errorf("send to %v: %s: %w", d.To, q.why(d), err)
		} else {
			err = d.Err()
		}
	}()
	return p.e.Await(ctx, &d.completion)
}

// TrySend is SendVia that does not wait: transport.ErrBusy if the message cannot go now, as the
// link has no room, an earlier message to the same destination waits, or a Drain holds it back. It
// is the one to call from Receive functions.
func (p *Port) TrySend(nic int, to Dest, b []byte) error {
	n, err := p.target(nic, to, len(b))
	if err != nil {
		return err
	}
	p.e.nics[nic].queue.flush()
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if err := p.admit(nic, n); err != nil {
		return err
	}
	p.checkpoint(nic)
	p.address(nic, to, n)
	p.out.copyIn(0, b)
	_, err = p.transmit(nic, 1)
	return err
}

// TrySendInPlace is TrySend of messages that begin behind the first Endpoint.Headroom bytes of each
// of bs. It overwrites those, and copies nothing: for layers that keep their messages, to send them
// again. It returns how many were sent, at most a batch of 64; the error is of the next one.
func (p *Port) TrySendInPlace(nic int, to Dest, bs ...[]byte) (n int, err error) {
	peer, err := p.target(nic, to, 0)
	if err != nil {
		return 0, err
	}
	p.e.nics[nic].queue.flush()
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if err := p.admit(nic, peer); err != nil {
		return 0, err
	}
	p.checkpoint(nic)
	p.address(nic, to, peer)
	for _, b := range bs[:min(len(bs), sendBatch)] {
		if err = p.fitsInPlace(to, b); err != nil {
			break
		}
		p.out.put(n, b)
		n++
	}
	sent, sendErr := p.transmit(nic, n)
	for i := range p.out.frames[:n] {
		p.out.frames[i].Headroom, p.out.frames[i].Payload = nil, nil // the caller's memory
	}
	return sent, cmp.Or(sendErr, err)
}

// target finds a message's neighbour, nil if it is for many, or reports what is wrong with the
// message. It is the only look at destination and size.
func (p *Port) target(nic int, to Dest, size int) (*neighbour, error) {
	e := p.e
	if uint(nic) >= uint(len(e.nics)) {
		return nil, fmt.Errorf("send to %v: %w", to, e.checkNIC(nic))
	}
	if err := e.fits(to, size); err != nil {
		return nil, err
	}
	if to.kind != wire.Unicast {
		return nil, to.check()
	}
	peer := e.lookup(NodeID(to.to))
	if peer == nil || peer.id == e.cfg.Node {
		return nil, p.noTarget(to)
	}
	return &peer.neighbours[nic], nil
}

func (p *Port) noTarget(to Dest) error {
	if p.closed.Load() {
		return p.err()
	}
	if NodeID(to.to) == p.e.cfg.Node {
		return fmt.Errorf("send to %v: %w", to, ErrSelf)
	}
	return fmt.Errorf("send to %v: %w (the table has %d nodes)", to, ErrUnknownNode, len(p.e.table.Load().nodes))
}

// fits reports whether a message is short enough. Where links differ, the limit is that of the one
// with the lowest MTU: receivers give buffers of MaxPayload to all.
func (e *Endpoint) fits(to Dest, size int) error {
	if size > e.maxPayload {
		return fmt.Errorf("send to %v: message %w", to, &transport.SizeError{Size: size, Max: e.maxPayload})
	}
	return nil
}

// fitsInPlace is fits for a message behind Endpoint.Headroom bytes.
func (p *Port) fitsInPlace(to Dest, b []byte) error {
	headroom := p.e.Headroom()
	if len(b) < headroom {
		return fmt.Errorf("send to %v: %d bytes in place (want Headroom, %d, before the message)", to, len(b), headroom)
	}
	return p.e.fits(to, len(b)-headroom)
}

// admit reports whether a message may go now, ahead of none that waits. The caller holds the
// outbox's lock.
func (p *Port) admit(nic int, n *neighbour) error {
	if p.closed.Load() {
		return p.err()
	}
	return p.e.nics[nic].queue.admit(n)
}
