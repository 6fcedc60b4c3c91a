package fabric

import (
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
	return Port(l2switch.Access(vid))
}

// Trunk is a port that carries these VIDs; for all of them use the zero Port. VLAN 1, if among
// them, is the PVID: its frames stay untagged if they came untagged.
func Trunk(vids ...transport.VID) Port {
	return Port{VIDs: append([]transport.VID{}, vids...)}
}
