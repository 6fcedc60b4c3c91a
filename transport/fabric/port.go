package fabric

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"
)

// Port says what a switch does with VLANs where a station or another switch is plugged in. The zero Port
// passes everything through: it is in every VID, and each tag, or none, leaves as it came. That is what a
// switch does which knows no VLANs, and more than a strict 802.1Q switch would: it lets VID 0 pass.
type Port struct {
	// PVID is the VLAN of what comes in untagged, or with a priority tag (VID 0). 0: VLAN 1.
	PVID transport.VID
	// VIDs are those that the port is a member of: no others come in or leave. nil: all of them.
	VIDs []transport.VID
	// Untagged are those of them that leave without a tag.
	Untagged []transport.VID
	// TaggedOnly takes in no frame without a VID, and lets none leave without.
	TaggedOnly bool
}

// Access is the port of a station in one VLAN that sees no tags.
func Access(vid transport.VID) Port {
	return Port{PVID: vid, VIDs: []transport.VID{vid}, Untagged: []transport.VID{vid}}
}

// Trunk is a port that carries these VIDs. VLAN 1, if among them, is its PVID: its frames
// stay untagged where they came so. Without VIDs it carries none; all of them is the zero Port.
func Trunk(vids ...transport.VID) Port {
	return Port{VIDs: append([]transport.VID{}, vids...)}
}

// config translates p for the switch.
func (p Port) config() (l2switch.Port, error) {
	c := l2switch.Port{PVID: p.PVID, Modes: make(map[transport.VID]l2switch.Mode)}
	if c.PVID == 0 {
		c.PVID = l2switch.DefaultPVID
	}
	if p.TaggedOnly {
		c.Accept = l2switch.AcceptTagged
	}
	for _, vid := range p.VIDs {
		c.Modes[vid] = l2switch.Tagged
	}
	if p.VIDs == nil {
		c.Others = l2switch.Tagged
	}
	if member := p.VIDs == nil || slices.Contains(p.VIDs, c.PVID); member && !p.TaggedOnly {
		c.Modes[c.PVID] = l2switch.Keep
	}
	for _, vid := range p.Untagged {
		if p.VIDs != nil && !slices.Contains(p.VIDs, vid) {
			return c, fmt.Errorf("VID %d is in Port.Untagged and not in Port.VIDs (the port is no member of it)", vid)
		}
		if p.TaggedOnly {
			return c, fmt.Errorf("Port.TaggedOnly is set, and Port.Untagged names VID %d (want one or the other)", vid)
		}
		c.Modes[vid] = l2switch.Untagged
	}
	return c, nil
}
