package mcd

import (
	"github.com/rawlane/rawlane/internal/prefetch"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// Message is a received message.
type Message struct {
	From                  Addr
	To                    Dest          // this node's port, a group or all
	NIC                   int           // the link by which it came
	Src                   transport.MAC // the address from which it came
	transport.OptionalTag               // as sent, even where a switch or NIC has stripped the tag
	Payload               []byte        // a view of the link's memory, valid until Receive returns
}

// ahead is how many frames lie between the one that is parsed and the one that is fetched from
// memory meanwhile: one takes about as long as the other.
const ahead = 2

// batch is the frames of one poll of a link that are being received. Where a Receive function
// panics, or ends its goroutine, it has the others, with which the next poll goes on: they have
// left the link, and are for other ports, too.
type batch struct {
	nic       int
	frames    []transport.Frame // to be looked at
	kept      []auth.Frame      // to be delivered before them: their sender has answered
	to        *Port             // gets messages[from:end]; nil: there are none
	from, end int               // messages from end on are free
}

// isOver reports whether nothing is left.
func (b *batch) isOver() bool { return b.to == nil && len(b.frames) == 0 && len(b.kept) == 0 }

// receive parses a batch of frames and delivers each run of messages to one port at once. more says
// that the poller looks again at once. The caller holds the poll lock.
func (e *Endpoint) receive(nic int, frames []transport.Frame, more bool) {
	if len(frames) > 0 {
		e.batch = batch{nic: nic, frames: frames}
		e.receiveRest(more)
	}
}

// receiveRest is receive of what is left of a batch. Before each call of a port's, batch is what is
// left after it.
func (e *Endpoint) receiveRest(more bool) {
	e.deliverKept()
	b := &e.batch
	nic, frames, to, from, end := b.nic, b.frames, b.to, b.from, b.end
	b.to = nil
	for i := range frames {
		if i+ahead < len(frames) {
			prefetch.Read(frames[i+ahead].Payload)
		}
		if !e.parse(nic, &frames[i]) {
			continue
		}
		if e.header.Kind >= wire.Probe {
			b.frames, b.end = frames[i:], end
			if to != nil {
				to.deliver(e.messages[from:end], true)
				to = nil
			}
			b.frames = frames[i+1:]
			e.receiveControl(nic, &frames[i], end)
			continue
		}
		if cause, elsewhere := e.isForOthers(&e.header); elsewhere {
			e.dropped[cause].Add(1)
			continue
		}
		// Before its port is looked for: what is refused for that has come, and comes once.
		if e.auth != nil && !e.nics[nic].auth.authenticate(&frames[i], end) {
			continue
		}
		p, cause := e.owner(nic, frames[i].Src, &e.header)
		if p == nil {
			e.dropped[cause].Add(1)
			continue
		}
		e.messages[end].set(nic, frames[i].Src, &e.header)
		if p != to {
			if to != nil {
				b.frames, b.to, b.from, b.end = frames[i+1:], p, end, end+1
				to.deliver(e.messages[from:end], true)
				b.to = nil
			}
			to, from = p, end
		}
		end++
	}
	b.frames, b.to = nil, nil
	if to != nil {
		to.deliver(e.messages[from:end], more)
	}
}

// deliverKept delivers what was kept until its sender had answered.
func (e *Endpoint) deliverKept() {
	for b := &e.batch; len(b.kept) > 0; {
		r := &b.kept[0]
		b.kept = b.kept[1:]
		e.nics[b.nic].auth.deliver(r, b.end)
	}
}

// parse reads a frame's header, or counts why it cannot.
func (e *Endpoint) parse(nic int, f *transport.Frame) bool {
	if f.EtherType != e.cfg.EtherType {
		e.dropped[dropType].Add(1)
		return false
	}
	if c, ok := wire.ClusterOf(f.Payload); ok && ClusterID(c) != e.cfg.Cluster {
		e.dropped[dropCluster].Add(1)
		return false
	}
	fault := e.parseHeader(f.Payload)
	if fault == wire.OK && e.header.HeaderOnly && e.nics[nic].coverage.wanted {
		fault = wire.BadChecksum // its sender has not heard yet that more is to be covered
	}
	if fault == wire.OK {
		return true
	}
	cause := faultDrops[fault]
	if fault == wire.BadVersion {
		version := wire.VersionOf(f.Payload)
		e.noteForeign(f.Src, version)
		if e.auth != nil && version == WireVersion {
			cause = dropPlain
		}
	}
	e.dropped[cause].Add(1)
	return false
}

// parseHeader reads a header of the version that the endpoint speaks.
func (e *Endpoint) parseHeader(b []byte) wire.Fault {
	if e.auth != nil {
		return wire.ParseAuth(b, &e.header, &e.authHeader)
	}
	return wire.Parse(b, &e.header)
}

// receiveControl handles a frame that is for no port. The caller holds the poll lock; messages from
// slot on are free.
func (e *Endpoint) receiveControl(nic int, f *transport.Frame, slot int) {
	l := e.nics[nic].auth
	switch {
	case e.header.Kind == wire.Contact:
		l.receiveContact(f)
	case l == nil || l.authenticate(f, slot):
		e.deliverControl(nic, f)
	}
}

// deliverControl takes a frame that is for no port to what it is for.
func (e *Endpoint) deliverControl(nic int, f *transport.Frame) {
	if e.header.Kind == wire.Introduction {
		e.nics[nic].auth.receiveIntroduction()
		return
	}
	e.receiveProbe(nic, f, &e.header)
}

// set makes m the message that h begins.
func (m *Message) set(nic int, src transport.MAC, h *wire.Header) {
	m.From = Addr{NodeID(h.From), PortID(h.SrcPort)}
	m.To = Dest{h.Kind, h.To, PortID(h.DstPort)}
	m.NIC = nic
	m.Src = src
	m.OptionalTag = transport.OptionalTagFromTCI(h.Tagged, h.TCI)
	m.Payload = h.Payload
}

// faultDrops names the counter of each fault.
var faultDrops = [...]drop{
	wire.TooShort:    dropShort,
	wire.BadVersion:  dropVersion,
	wire.BadLength:   dropLength,
	wire.BadChecksum: dropChecksum,
	wire.BadKind:     dropKind,
}

// isForOthers reports whether a well-formed message of this cluster is not for this node, and the
// cause for which it is dropped then.
func (e *Endpoint) isForOthers(h *wire.Header) (drop, bool) {
	switch h.Kind {
	case wire.Unicast:
		return dropNode, NodeID(h.To) != e.cfg.Node
	case wire.Multicast:
		return dropGroup, (*e.groups.Load())[GroupID(h.To)] == 0
	}
	return 0, false
}

// owner returns the port that a message to this node is for, or nil and the cause for which it is
// dropped.
func (e *Endpoint) owner(nic int, src transport.MAC, h *wire.Header) (*Port, drop) {
	p := e.ports[h.DstPort].Load()
	if p == nil {
		return nil, dropNoPort
	}
	if !p.opts.SkipSourceCheck && !e.sourceMatches(nic, src, NodeID(h.From)) {
		return nil, dropSource
	}
	return p, 0
}

// sourceMatches reports whether a message that claims to be from a node came from that node's
// address. Nodes that the table does not know are believed, except for one who claims to be us.
func (e *Endpoint) sourceMatches(nic int, src transport.MAC, from NodeID) bool {
	if from == e.cfg.Node {
		return false
	}
	p := e.lookup(from)
	return p == nil || p.neighbours[nic].mac == src
}
