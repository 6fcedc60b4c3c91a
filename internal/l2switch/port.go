package l2switch

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// mode is a port's membership in a VID, and how frames of that VID leave by it.
type mode uint8

const (
	excluded mode = iota // not a member: none leave, and none come in
	tagged               // with a tag
	untagged             // without
	// keep: as they came, like a switch without VLANs (IEEE 802.1D). A frame that came untagged or
	// with a priority tag leaves so, and one that came tagged leaves tagged. So priority tags pass,
	// which 802.1Q does not allow. Only the PVID has it.
	keep
)

// Port is the configuration of a port. The zero Port passes everything through, as a switch without
// VLANs does: it is in every VID, and frames leave with the tag, or without one, as they came.
type Port struct {
	PVID       transport.VID   // of untagged and priority-tagged frames; 0: DefaultPVID
	VIDs       []transport.VID // that the port is a member of; nil: all
	Untagged   []transport.VID // of those, that leave without a tag
	TaggedOnly bool            // no frame comes in or leaves without a VID
}

// Access is the port of a station without VLANs: a member of vid alone, untagged.
func Access(vid transport.VID) Port {
	return Port{PVID: vid, VIDs: []transport.VID{vid}, Untagged: []transport.VID{vid}}
}

// Trunk is a port to another switch that carries vids, tagged, and nothing untagged.
func Trunk(vids ...transport.VID) Port {
	return Port{VIDs: append([]transport.VID{}, vids...), TaggedOnly: true}
}

// port is a Port, prepared for look-ups by VID.
type port struct {
	mode       [transport.MaxVID + 1]mode
	pvid       transport.VID
	taggedOnly bool
	down       bool
}

func newPort(c Port) (*port, error) {
	p := &port{pvid: cmp.Or(c.PVID, DefaultPVID), taggedOnly: c.TaggedOnly}
	if err := checkVID(p.pvid); err != nil {
		return nil, fmt.Errorf("PVID: %w", err)
	}
	for _, vid := range slices.Concat(c.VIDs, c.Untagged) {
		if err := checkVID(vid); err != nil {
			return nil, err
		}
	}
	for vid := transport.VID(1); c.VIDs == nil && vid <= transport.MaxVID; vid++ {
		p.mode[vid] = tagged
	}
	for _, vid := range c.VIDs {
		p.mode[vid] = tagged
	}
	if p.mode[p.pvid] == tagged && !c.TaggedOnly {
		p.mode[p.pvid] = keep
	}
	for _, vid := range c.Untagged {
		if p.mode[vid] == excluded {
			return nil, fmt.Errorf("VID %d is in Port.Untagged and not in Port.VIDs (the port is no member of it)", vid)
		}
		if c.TaggedOnly {
			return nil, fmt.Errorf("Port.TaggedOnly is set, and Port.Untagged names VID %d (want one or the other)",
				vid)
		}
		p.mode[vid] = untagged
	}
	return p, nil
}

func checkVID(vid transport.VID) error {
	if vid < 1 || vid > transport.MaxVID {
		return fmt.Errorf("%w: VID %d (want 1 to %d)", transport.ErrBadTag, vid, transport.MaxVID)
	}
	return nil
}

// egress returns the record of f, classified as vid, leaving by this port, which is a member of
// vid. Priority and DEI stay wherever there is a tag; a frame that came without one has 0 of both.
func (p *port) egress(number int, f *transport.Frame, vid transport.VID) Egress {
	e := Egress{Port: number}
	switch p.mode[vid] {
	case untagged:
		return e
	case keep:
		e.Tagged = f.Tagged
		if f.Tagged {
			e.Tag = f.Tag // VID 0 stays VID 0
		}
		return e
	}
	e.Tagged, e.Tag.VID = true, vid
	if f.Tagged {
		e.Tag.PCP, e.Tag.DEI = f.Tag.PCP, f.Tag.DEI
	}
	return e
}
