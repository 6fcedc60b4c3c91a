package mcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// Send sends b to a port of another node, over the first link. It returns when b may be reused; that is not
// to say that the message arrived. While the link has no room it waits, and so ends with ctx's error at
// the latest. ErrUnknownNode, ErrSelf, ErrTooLarge (nothing was sent), ErrClosed.
func (p *Port) Send(ctx context.Context, to Addr, b []byte) error { return p.send(ctx, To(to), 0, b) }

// Multicast sends b to a port of every other member of a group, over the first link. One need not be a member
// to send. Errors as for Send.
func (p *Port) Multicast(ctx context.Context, g GroupID, to PortID, b []byte) error {
	return p.send(ctx, ToGroup(g, to), 0, b)
}

// Broadcast sends b to a port of every other node, over the first link. Errors as for Send.
func (p *Port) Broadcast(ctx context.Context, to PortID, b []byte) error {
	return p.send(ctx, ToAll(to), 0, b)
}

// SendVia is Send to any destination over any link.
func (p *Port) SendVia(ctx context.Context, nic int, to Dest, b []byte) error {
	return p.send(ctx, to, nic, b)
}

// TrySend is SendVia that does not wait: transport.ErrBusy if the link has no room now. It is the one to call
// from handlers.
func (p *Port) TrySend(nic int, to Dest, b []byte) error {
	if err := p.vacant(nic, to, len(b)); err != nil {
		return err
	}
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if err := p.encode(0, nic, to, b); err != nil {
		return err
	}
	_, err := p.transmit(nic, 1)
	return err
}

// TrySendInPlace is TrySend of messages that begin behind the first Headroom bytes of each of bs. It overwrites those, and copies
// nothing: for layers that keep their messages, to send them again. It returns how many were sent, at most a batch of 64;
// the error is of the next one.
func (p *Port) TrySendInPlace(nic int, to Dest, bs ...[]byte) (n int, err error) {
	if err := p.vacant(nic, to, 0); err != nil {
		return 0, err
	}
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if err := p.address(nic, to); err != nil {
		return 0, err
	}
	limit := p.e.links[nic].MTU() - HeaderLen
	for _, b := range bs[:min(len(bs), sendBatch)] {
		if size := len(b) - Headroom; size > limit {
			err = tooLarge(to, size, limit)
			break
		}
		p.out.put(n, b)
		n++
	}
	if n == 0 {
		return 0, err
	}
	n, sendErr := p.transmit(nic, n)
	return n, cmp.Or(sendErr, err)
}

// vacant reports whether a message can be sent at once, and what is wrong with it.
func (p *Port) vacant(nic int, to Dest, size int) error {
	if err := p.check(nic, to, size); err != nil {
		return err
	}
	if p.e.queues[nic].busy() { // it may not overtake what was posted
		p.e.queues[nic].flush()
		if p.e.queues[nic].busy() {
			return transport.ErrBusy
		}
	}
	return nil
}

func (p *Port) send(ctx context.Context, to Dest, nic int, b []byte) error {
	for {
		err := p.TrySend(nic, to, b)
		if err == nil || !errors.Is(err, transport.ErrBusy) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("send to %v: %s: %w", to, p.e.whyBusy(nic, err), ctx.Err())
		}
		if p.e.awaitFence(ctx, err) {
			continue
		}
		p.e.Progress()
		runtime.Gosched()
	}
}

// check reports what of a message is wrong before anything is sent.
func (p *Port) check(nic int, to Dest, size int) error {
	e := p.e
	if e.closed.Load() {
		return ErrClosed
	}
	if uint(nic) >= uint(len(e.links)) {
		return fmt.Errorf("send to %v: link %d: the endpoint has %d", to, nic, len(e.links))
	}
	if limit := e.links[nic].MTU() - HeaderLen; size > limit {
		return tooLarge(to, size, limit)
	}
	if to.kind != wire.Unicast {
		return nil
	}
	if NodeID(to.to) == e.cfg.Node {
		return fmt.Errorf("send to %v: %w", to, ErrSelf)
	}
	if e.table.Load().lookup(NodeID(to.to)) == nil {
		return fmt.Errorf("send to %v: %w (the table has %d nodes)", to, ErrUnknownNode, len(e.table.Load().nodes))
	}
	return nil
}

func tooLarge(to Dest, size, limit int) error {
	return fmt.Errorf("send to %v: message %w", to, &transport.SizeError{Size: size, Max: limit})
}

// sendBatch is how many descriptors are given to a link at once; by then the cost of the call is shared well.
const sendBatch = 64

// Headroom is what a message that is sent in place leaves free before it, in bytes: for our header and Ethernet's.
const Headroom = transport.MaxHeaderLen + HeaderLen

// outbox is where a port puts its headers before its payloads.
type outbox struct {
	mu     sync.Mutex // guards all of it; taken inside sendQueue.mu
	bufs   [][]byte   // as many as were ever needed at once, up to sendBatch
	size   int
	frames [sendBatch]transport.Frame
	counts [sendBatch]*vlan.Count // of the frames' routes; nil: nobody counts
	cover  cover                  // of the next message
}

// cover is what a message travels in.
type cover struct {
	header wire.Header
	frame  transport.Frame
	count  *vlan.Count
}

func (o *outbox) init(links []transport.Link) {
	for _, l := range links {
		o.size = max(o.size, transport.MaxHeaderLen+l.MTU())
	}
}

func (o *outbox) buf(i int) []byte {
	if i == len(o.bufs) {
		o.bufs = append(o.bufs, make([]byte, o.size))
	}
	return o.bufs[i]
}

// put makes the message that is in b, behind Headroom bytes, the i-th frame, in the present cover.
func (o *outbox) put(i int, b []byte) {
	message := b[transport.MaxHeaderLen:]
	wire.Seal(message, &o.cover.header)
	f := &o.frames[i]
	*f = o.cover.frame
	f.Headroom, f.Payload = b[:transport.MaxHeaderLen], message
	o.counts[i] = o.cover.count
}

// encode makes a message the i-th frame of the outbox, whose lock the caller holds.
func (p *Port) encode(i, nic int, to Dest, b []byte) error {
	if err := p.address(nic, to); err != nil {
		return err
	}
	buf := p.out.buf(i)
	p.out.put(i, buf[:Headroom+copy(buf[Headroom:], b)])
	return nil
}

// address makes the outbox's cover, whose lock the caller holds, one for messages to a destination.
func (p *Port) address(nic int, to Dest) error {
	e, c := p.e, &p.out.cover
	switch to.kind {
	case wire.Unicast:
		peer := e.routes().lookup(NodeID(to.to))
		if peer == nil {
			return fmt.Errorf("send to %v: %w", to, ErrUnknownNode)
		}
		if peer.free != nil {
			return errHeld
		}
		c.frame, c.count = peer.templates[nic].Frame(nil), peer.counts[nic]
	case wire.Multicast:
		e.toMany(c, nic, GroupMAC(e.cfg.Cluster, GroupID(to.to)))
	default:
		e.toMany(c, nic, transport.Broadcast)
	}
	c.header = wire.Header{
		Kind:    to.kind,
		Tagged:  c.frame.Tagged,
		DstPort: uint8(to.port),
		SrcPort: uint8(p.id),
		From:    uint16(e.cfg.Node),
		To:      to.to,
		Cluster: uint32(e.cfg.Cluster),
	}
	if c.frame.Tagged {
		c.header.TCI = c.frame.Tag.TCI()
	}
	return nil
}

func (e *Endpoint) toMany(c *cover, nic int, dst transport.MAC) {
	c.frame = transport.Frame{Dst: dst, Src: e.links[nic].MAC(), EtherType: e.cfg.EtherType}
	c.frame.OptionalTag = e.cfg.Router.Route(dst)
	c.count = counter(e.cfg.Router, dst)
}

// counter returns where the router counts frames to dst, or nil if it does not.
func counter(r vlan.Router, dst transport.MAC) *vlan.Count {
	if c, ok := r.(vlan.Counting); ok {
		return c.Counter(dst)
	}
	return nil
}

// transmit gives the first n frames of the outbox, whose lock the caller holds, to the link, and returns how
// many it took.
func (p *Port) transmit(nic, n int) (int, error) {
	sent, err := p.e.links[nic].Send(p.out.frames[:n])
	size := 0
	for i := range sent {
		f := &p.out.frames[i]
		size += len(f.Payload) - HeaderLen
		if c := p.out.counts[i]; c != nil {
			c.Add(1, f.WireLen())
		}
	}
	p.tx.add(sent, size)
	return sent, err
}
