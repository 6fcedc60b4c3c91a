package transport

import "fmt"

// VID is an IEEE 802.1Q VLAN identifier: 1 to 4094. VID 0 in a tag means "priority only, no VLAN".
type VID uint16

// PCP is an IEEE 802.1Q priority code point: 0 to 7.
type PCP uint8

// MaxVID is the highest VLAN identifier; 4095 is reserved by IEEE 802.1Q.
const MaxVID VID = 4094

// Tag is what an 802.1Q tag carries. The zero Tag is a valid tag (priority 0, no VLAN) and differs from
// no tag at all: see Frame.Tagged.
type Tag struct {
	VID VID
	PCP PCP
	DEI bool // drop eligible
}

// TagFromTCI unpacks a tag control information field: priority (3 bits), DEI (1), VID (12).
func TagFromTCI(tci uint16) Tag {
	return Tag{VID: VID(tci & 0xfff), PCP: PCP(tci >> 13), DEI: tci&0x1000 != 0}
}

// TCI packs t; it is the inverse of TagFromTCI for valid tags.
func (t Tag) TCI() uint16 {
	tci := uint16(t.PCP)<<13 | uint16(t.VID)&0xfff
	if t.DEI {
		tci |= 0x1000
	}
	return tci
}

// Validate reports what of t cannot be put into a tag. VID 0 (priority only) is valid here.
func (t Tag) Validate() error {
	if t.VID > MaxVID {
		return fmt.Errorf("%w: VID %d (want 1 to %d, or 0 for priority only)", ErrBadTag, t.VID, MaxVID)
	}
	if t.PCP > 7 {
		return fmt.Errorf("%w: PCP %d (want 0 to 7)", ErrBadTag, t.PCP)
	}
	return nil
}

// String formats t as "VID 101 PCP 1", with "DEI" where set.
func (t Tag) String() string {
	s := fmt.Sprintf("VID %d PCP %d", t.VID, t.PCP)
	if t.DEI {
		s += " DEI"
	}
	return s
}
