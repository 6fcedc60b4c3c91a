package slot

import (
	"encoding/binary"

	"github.com/rawlane/rawlane/transport"
)

// Config is what a slot counts.
type Config struct {
	Identity   [12]byte // of the group: hash and epoch, as on the wire
	Number     uint8
	Label      uint8        // of the arrivals
	Generation uint32       // the first that is counted
	Ranks      int          // how many arrive, the Center among them
	Members    []MemberInfo // all but the Center
	Release    []byte       // the frame of a release, of whichever generation
}

// MemberInfo is a member whose frames are counted.
type MemberInfo struct {
	Node        uint16
	Rank        int
	Incarnation uint32
	MAC         transport.MAC
}

// Key returns the key of a member's frames.
func (c *Config) Key(node uint16) (k Key) {
	k.Identity, k.Number = c.Identity, c.Number
	binary.BigEndian.PutUint16(k.Node[:], node)
	return k
}

// At returns what the unit knows of a member that arrives at a slot.
func (m *MemberInfo) At(slot int) (v Member) {
	v.Slot, v.Rank, v.MAC = uint32(slot), uint32(m.Rank), m.MAC
	binary.BigEndian.PutUint32(v.Incarnation[:], m.Incarnation)
	return v
}
