package transport

import "fmt"

// VID is an IEEE 802.1Q VLAN identifier: 1 to 4094. VID 0 in a tag means "priority only, no VLAN".
type VID uint16

// PCP is an IEEE 802.1Q priority code point: 0 to 7.
type PCP uint8

// MaxVID is the highest VLAN identifier; 4095 is reserved by IEEE 802.1Q.
const MaxVID VID = 4094

// Tag is the content of an 802.1Q tag. The zero Tag is a valid tag (priority 0, no VLAN) and
// differs from no tag at all: see OptionalTag.
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

// Validate returns ErrBadTag, with the reason, if the VID or PCP is out of range. VID 0 (priority
// only) is in range.
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

// OptionalTag is the 802.1Q tag of a frame, or no tag. The zero OptionalTag is no tag. It compares
// with ==.
type OptionalTag struct {
	// Tagged says that Tag is on the wire. A zero Tag with Tagged is a priority tag, not "no tag".
	Tagged bool `json:"tagged"`
	Tag    Tag  `json:"tag"`
}

// Untagged is no tag.
var Untagged = OptionalTag{}

// Tagged returns the OptionalTag that is t.
func Tagged(t Tag) OptionalTag { return OptionalTag{Tagged: true, Tag: t} }

// TCI packs t. No tag is 0, like a zero tag.
func (t OptionalTag) TCI() uint16 {
	if !t.Tagged {
		return 0
	}
	return t.Tag.TCI()
}

// OptionalTagFromTCI unpacks a tag control information field if tagged, and returns no tag if not.
func OptionalTagFromTCI(tagged bool, tci uint16) OptionalTag {
	if !tagged {
		return Untagged
	}
	return Tagged(TagFromTCI(tci))
}

// Validate returns the error of Tag.Validate if there is a tag.
func (t OptionalTag) Validate() error {
	if !t.Tagged {
		return nil
	}
	return t.Tag.Validate()
}

// String formats t as "VID 5", "VID 5 PCP 3" or "no tag".
func (t OptionalTag) String() string {
	switch {
	case !t.Tagged:
		return "no tag"
	case t.Tag.PCP == 0 && !t.Tag.DEI:
		return fmt.Sprintf("VID %d", t.Tag.VID)
	}
	return t.Tag.String()
}
