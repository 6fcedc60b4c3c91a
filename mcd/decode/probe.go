package decode

import (
	"fmt"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// ProbeHead is what a probe or an answer begins its payload with.
type ProbeHead struct {
	Number     uint32
	Detour     bool          // the answer is to come by another tag: Back, if BackTagged, or none
	BackTagged bool          // likewise
	Back       transport.Tag // likewise
	Anyone     bool          // whoever gets it is to answer
	SeenTagged bool          // of an answer: the probe arrived with the tag Seen
	Seen       transport.Tag // likewise
	Instance   uint32        // the life of the endpoint that sent this
}

// Probe returns the head of a probe or answer. ok is false for other kinds, and where it is cut off.
func (m *Message) Probe() (head ProbeHead, ok bool) {
	var h wire.ProbeHead
	if m.Kind != Probe && m.Kind != Answer || !h.Parse(m.Payload) {
		return ProbeHead{}, false
	}
	return ProbeHead{
		Number:     h.Number,
		Detour:     h.Has(wire.ProbeDetour),
		BackTagged: h.Has(wire.ProbeBackTagged),
		Back:       transport.TagFromTCI(h.Back),
		Anyone:     h.Has(wire.ProbeAnyone),
		SeenTagged: h.Has(wire.ProbeSeenTagged),
		Seen:       transport.TagFromTCI(h.Seen),
		Instance:   h.Instance,
	}, true
}

// probeString is String for probes and answers: "1 -> 2 probe 7 cluster 0x1 16 bytes".
func (m *Message) probeString() string {
	s := fmt.Sprintf("%d -> %d %v", m.From, m.To, m.Kind)
	if h, ok := m.Probe(); ok {
		s += fmt.Sprintf(" %d", h.Number)
		switch {
		case m.Kind == Answer && h.SeenTagged:
			s += fmt.Sprintf(" seen with %v", h.Seen)
		case m.Kind == Answer:
			s += " seen without a tag"
		case h.Detour && h.BackTagged:
			s += fmt.Sprintf(" back with %v", h.Back)
		case h.Detour:
			s += " back without a tag"
		}
	}
	return s + fmt.Sprintf(" cluster %#x %d bytes", m.Cluster, m.Length) + m.suffix()
}
