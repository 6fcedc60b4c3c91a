package l2switch

// Verdict is what a switch did with a frame.
type Verdict uint8

const (
	Forwarded   Verdict = iota // to the one port behind which its destination is
	Flooded                    // to all ports of its VID: the destination is not known
	Multicast                  // to all ports of its VID: the destination is a group
	SamePort                   // filtered: its destination is behind the port it came from
	NotAccepted                // filtered: the port does not accept such frames, tagged or untagged
	NotMember                  // filtered: the port it came from is not a member of its VID
	BadVID                     // filtered: VID 4095
	BadSource                  // filtered: a group or the zero address as its source
	LinkLocal                  // filtered: 01:80:c2:00:00:0x, which no switch forwards
	PortDown                   // filtered: came by a port that is down
	verdicts                   // how many there are
)

var verdictNames = [verdicts]string{
	"forwarded", "flooded", "multicast", "same port", "not accepted", "not a member",
	"bad VID", "bad source", "link-local", "port down",
}

// String names v.
func (v Verdict) String() string {
	if v < verdicts {
		return verdictNames[v]
	}
	return "unknown"
}

// Counters of a switch, in frames. Every frame counts in exactly one of Forwarded to
// DroppedPortDown.
type Counters struct {
	Forwarded uint64 `json:"forwarded"` // unicast, to the one port where the destination was learned
	Flooded   uint64 `json:"flooded"`   // unicast, to the whole VID: the destination was not known
	Multicast uint64 `json:"multicast"` // group or broadcast, to the whole VID

	DroppedSamePort     uint64 `json:"dropped_same_port"`      // the destination is where it came from
	DroppedNotAccepted  uint64 `json:"dropped_not_accepted"`   // frame type that the port does not accept
	DroppedNotMember    uint64 `json:"dropped_not_member"`     // came by a port outside its VID
	DroppedNotMemberOut uint64 `json:"dropped_not_member_out"` // 0: behind a port outside a VID none is learned
	DroppedBadVID       uint64 `json:"dropped_bad_vid"`        // VID 4095
	DroppedBadSource    uint64 `json:"dropped_bad_source"`     // group or zero source address
	DroppedLinkLocal    uint64 `json:"dropped_link_local"`     // destination 01:80:c2:00:00:0x
	DroppedPortDown     uint64 `json:"dropped_port_down"`      // came by a port that is down

	Learned   uint64 `json:"learned"`    // addresses entered
	Moved     uint64 `json:"moved"`      // addresses that turned up behind another port
	TableFull uint64 `json:"table_full"` // addresses that found no room: frames for them flood
	Addresses int    `json:"addresses"`  // in the table now; aged ones stay until room is needed
}

// Received returns how many frames came in.
func (c *Counters) Received() uint64 { return c.Forwarded + c.Flooded + c.Multicast + c.Dropped() }

// Dropped returns how many frames were filtered, for whatever cause.
func (c *Counters) Dropped() uint64 {
	return c.DroppedSamePort + c.DroppedNotAccepted + c.DroppedNotMember +
		c.DroppedBadVID + c.DroppedBadSource + c.DroppedLinkLocal + c.DroppedPortDown
}

// Counters returns what passed since the switch was made.
func (s *Switch) Counters() Counters {
	n := &s.count
	return Counters{
		Forwarded: n[Forwarded], Flooded: n[Flooded], Multicast: n[Multicast],
		DroppedSamePort: n[SamePort], DroppedNotAccepted: n[NotAccepted], DroppedNotMember: n[NotMember],
		DroppedBadVID: n[BadVID], DroppedBadSource: n[BadSource], DroppedLinkLocal: n[LinkLocal],
		DroppedPortDown: n[PortDown],
		Learned:         s.learned, Moved: s.moved, TableFull: s.tableFull, Addresses: s.table.used,
	}
}
