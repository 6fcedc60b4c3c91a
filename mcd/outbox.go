package mcd

import (
	"sync"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// outbox is where a port puts headers before payloads, for a batch of frames.
type outbox struct {
	mu       sync.Mutex // guards all of it; taken inside sendQueue.mu
	bufs     [][]byte   // as many as were ever needed at once, up to sendBatch
	size     int
	frames   [sendBatch]transport.Frame
	counts   [sendBatch]*vlan.Count // of the frames' routes; nil: not counted
	envelope envelope               // of the next messages
}

// envelope is what a message travels in.
type envelope struct {
	header wire.Header
	frame  transport.Frame
	count  *vlan.Count
}

func (o *outbox) init(maxPayload int) { o.size = Headroom + maxPayload }

// awaitSenders returns when the sends that have been admitted are over.
func (o *outbox) awaitSenders() {
	o.mu.Lock()
	defer o.mu.Unlock()
}

// copyIn makes a message the i-th frame, in the present envelope.
func (o *outbox) copyIn(i int, b []byte) {
	if i == len(o.bufs) {
		o.bufs = append(o.bufs, make([]byte, o.size))
	}
	buf := o.bufs[i]
	o.put(i, buf[:Headroom+copy(buf[Headroom:], b)])
}

// put makes the message that is in b, behind Headroom bytes, the i-th frame, in the present
// envelope.
func (o *outbox) put(i int, b []byte) {
	message := b[transport.MaxHeaderLen:]
	wire.Seal(message, &o.envelope.header)
	f := &o.frames[i]
	*f = o.envelope.frame
	f.Headroom, f.Payload = b[:transport.MaxHeaderLen], message
	o.counts[i] = o.envelope.count
}

// address makes the outbox's envelope one for messages to a destination: to a neighbour, or to many
// if n is nil. The caller holds the outbox's lock.
func (p *Port) address(nic int, to Dest, n *neighbour) {
	e, v := p.e, &p.out.envelope
	var dst transport.MAC
	var tag transport.OptionalTag
	if n != nil {
		dst = n.mac
		tag, v.count = e.router.toNeighbour(n)
	} else {
		dst = e.manyMAC(to)
		tag, v.count = e.router.toMany(dst)
	}
	v.frame = e.frame(nic, dst, tag)
	v.header = wire.Header{
		Kind:    to.kind,
		Tagged:  tag.Tagged,
		TCI:     tag.TCI(),
		DstPort: uint8(to.port),
		SrcPort: uint8(p.id),
		From:    uint16(e.cfg.Node),
		To:      to.to,
		Cluster: uint32(e.cfg.Cluster),
	}
}

// frame returns the frame of a message, without its payload.
func (e *Endpoint) frame(nic int, dst transport.MAC, tag transport.OptionalTag) transport.Frame {
	return transport.Frame{Dst: dst, Src: e.nics[nic].mac, EtherType: e.cfg.EtherType, OptionalTag: tag}
}

// manyMAC returns the Ethernet address of a destination that is a group or all nodes.
func (e *Endpoint) manyMAC(to Dest) transport.MAC {
	if to.kind == wire.Multicast {
		return GroupMAC(e.cfg.Cluster, GroupID(to.to))
	}
	return transport.Broadcast
}

// transmit gives the first n frames of the outbox to the link, and returns how many it took. The
// caller holds the outbox's lock.
func (p *Port) transmit(nic, n int) (int, error) {
	sent, err := p.e.nics[nic].link.Send(p.out.frames[:n])
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
