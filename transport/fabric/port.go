package fabric

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"
)

// Port is the VLAN configuration of a switch's port. The zero Port passes everything through, as a
// switch without VLANs does: it is in every VID, and frames leave with the tag, or without one, as
// they came. (A strict 802.1Q switch would not let VID 0 pass.)
type Port struct {
	// PVID is the VLAN of frames that come in untagged or with a priority tag (VID 0). 0 means 1.
	PVID transport.VID
	// VIDs are the VLANs that the port is a member of: no others come in or leave. nil means all.
	VIDs []transport.VID
	// Untagged are the VIDs, of those, that leave without a tag.
	Untagged []transport.VID
	// TaggedOnly lets no frame in or out without a VID.
	TaggedOnly bool
}

// Access is the port of a station in one VLAN that sees no tags.
func Access(vid transport.VID) Port {
	return Port{PVID: vid, VIDs: []transport.VID{vid}, Untagged: []transport.VID{vid}}
}

// Trunk is a port that carries these VIDs; for all of them use the zero Port. VLAN 1, if among
// them, is the PVID: its frames stay untagged if they came untagged.
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
