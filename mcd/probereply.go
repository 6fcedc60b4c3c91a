package mcd

import (
	"slices"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// receiveProbe replies to a probe, or takes a reply to the goroutine that waits for it. The caller
// holds the poll lock.
func (e *Endpoint) receiveProbe(nic int, f *transport.Frame, h *wire.Header) {
	var head wire.ProbeHead
	if cause, ok := e.acceptProbe(f, h, &head); !ok {
		e.dropped[cause].Add(1)
		return
	}
	p := &e.probes.got
	*p = Probe{
		Reply:       h.Kind == wire.Reply,
		Number:      head.Number,
		From:        NodeID(h.From),
		NIC:         nic,
		Src:         f.Src,
		Incarnation: head.Incarnation,
		SentTag:     transport.OptionalTagFromTCI(h.Tagged, h.TCI),
		ReceivedTag: f.OptionalTag,
		Body:        h.Payload[MinProbe:],
	}
	if p.Reply {
		p.PeerReceivedTag = transport.OptionalTagFromTCI(head.Has(wire.ProbeReceivedTagged), head.ReceivedTCI)
		e.probes.replies.Add(1)
	} else {
		e.probes.asked.Add(1)
		if p.From != e.cfg.Node {
			e.reply(p, h.Payload, &head)
		}
	}
	e.tell(p)
}

// acceptProbe reads a probe or reply, and says whether it is for us, or else the cause for which it
// is dropped.
func (e *Endpoint) acceptProbe(f *transport.Frame, h *wire.Header, head *wire.ProbeHead) (cause drop, ok bool) {
	own := NodeID(h.To) == e.cfg.Node
	switch {
	case !head.Parse(h.Payload):
		return dropProbe, false
	case NodeID(h.From) == e.cfg.Node:
		// Either our own came back, or another node has our number.
		return dropSource, h.Kind == wire.Probe && own && head.Incarnation == e.probes.incarnation
	case !own && (h.Kind == wire.Reply || !head.Has(wire.ProbeAnyNode)):
		return dropNode, false
	case f.Dst.IsMulticast() || f.Src.IsMulticast():
		return dropProbe, false // one frame may not have many replies
	}
	return 0, true
}

// reply sends a probe's payload back to where it came from: as long, and with the tag that it was
// sent with, unless it asks for another. Where the link has no room, the reply is lost: probes are
// repeated anyway. The caller holds the poll lock.
func (e *Endpoint) reply(p *Probe, payload []byte, head *wire.ProbeHead) {
	s := &e.probes
	tag := p.SentTag
	if head.Has(wire.ProbeReplyTag) {
		tag = transport.OptionalTagFromTCI(head.Has(wire.ProbeReplyTagged), head.ReplyTCI)
	}
	head.Flags &^= wire.ProbeReceivedTagged
	head.ReceivedTCI = p.ReceivedTag.TCI()
	if p.ReceivedTag.Tagged {
		head.Flags |= wire.ProbeReceivedTagged
	}
	head.Incarnation = s.incarnation
	var room [wire.AuthHeaderLen]byte
	s.reply = append(append(s.reply[:0], room[:e.headerLen]...), payload...)
	s.reply = slices.Grow(s.reply, wire.TagLen)
	s.sent[0] = e.frame(p.NIC, p.Src, tag)
	s.sent[0].Payload = s.reply
	e.sealProbe(p.NIC, &s.sent[0], wire.Reply, p.From, head)
	if _, err := e.nics[p.NIC].link.Send(s.sent[:]); err != nil {
		s.unanswered.Add(1)
		return
	}
	s.answered.Add(1)
}

// tell takes p to the ping that waits for it, and to all watchers.
func (e *Endpoint) tell(p *Probe) {
	s := &e.probes
	s.mu.Lock()
	var waiting *ping
	if w := s.waiting[p.Number]; p.Reply && w != nil &&
		(e.isReply(w.to, p) || w.anyNode && p.NIC == w.to.NIC) {
		waiting = w
		delete(s.waiting, p.Number)
	}
	watchers := s.watchers
	s.mu.Unlock()
	if waiting != nil {
		waiting.finish(p)
	}
	for _, w := range watchers {
		(*w)(p)
	}
}
