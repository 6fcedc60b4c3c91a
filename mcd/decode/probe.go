package decode

import (
	"fmt"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// ProbeHead is what the payload of a probe or a reply begins with.
type ProbeHead struct {
	Number      uint32
	HasReplyTag bool                  // the reply is to take ReplyTag, and not the probe's own tag
	ReplyTag    transport.OptionalTag // with HasReplyTag
	AnyNode     bool                  // every node that gets the probe is to reply
	ReceivedTag transport.OptionalTag // of a reply: as the probe arrived
	Incarnation uint32                // of the endpoint that sent this
}

// Probe returns the head of a probe or reply. ok is false for other kinds, and where it is cut off
// or encrypted.
func (m *Message) Probe() (head ProbeHead, ok bool) {
	var h wire.ProbeHead
	if m.Kind != Probe && m.Kind != Reply || m.Auth != nil && m.Auth.Encrypted || !h.Parse(m.Payload) {
		return ProbeHead{}, false
	}
	return ProbeHead{
		Number:      h.Number,
		HasReplyTag: h.Has(wire.ProbeReplyTag),
		ReplyTag:    transport.OptionalTagFromTCI(h.Has(wire.ProbeReplyTagged), h.ReplyTCI),
		AnyNode:     h.Has(wire.ProbeAnyNode),
		ReceivedTag: transport.OptionalTagFromTCI(h.Has(wire.ProbeReceivedTagged), h.ReceivedTCI),
		Incarnation: h.Incarnation,
	}, true
}

// probeString is String for probes and replies: "1 -> 2 probe 7 cluster 0x1 16 bytes".
func (m *Message) probeString() string {
	s := fmt.Sprintf("%d -> %d %v", m.From, m.To, m.Kind)
	if h, ok := m.Probe(); ok {
		s += fmt.Sprintf(" %d", h.Number)
		switch {
		case m.Kind == Reply:
			s += " received with " + h.ReceivedTag.String()
		case h.HasReplyTag:
			s += " reply with " + h.ReplyTag.String()
		}
	}
	return s + fmt.Sprintf(" cluster %#x %d bytes", m.Cluster, m.Length) + m.suffix()
}
