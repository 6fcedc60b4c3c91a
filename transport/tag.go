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

// OptionalTag is the 802.1Q tag of a frame, or that the frame has none. The zero OptionalTag is no tag.
// It is comparable.
type OptionalTag struct {
	// Tagged says that Tag is on the wire. A zero Tag with Tagged is a priority tag, not "no tag".
	Tagged bool `json:"tagged"`
	Tag    Tag  `json:"tag"`
}

// Untagged is no tag.
var Untagged = OptionalTag{}

// Tagged returns the OptionalTag that is t.
func Tagged(t Tag) OptionalTag { return OptionalTag{Tagged: true, Tag: t} }

// TCI packs t; no tag is 0, as a zero tag is.
func (t OptionalTag) TCI() uint16 {
	if !t.Tagged {
		return 0
	}
	return t.Tag.TCI()
}

// OptionalTagFromTCI unpacks a tag control information field, if there is one.
func OptionalTagFromTCI(tagged bool, tci uint16) OptionalTag {
	if !tagged {
		return Untagged
	}
	return Tagged(TagFromTCI(tci))
}

// Validate reports what of t cannot be put into a tag.
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
