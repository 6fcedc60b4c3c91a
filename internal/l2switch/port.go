package l2switch

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Mode is a port's membership in a VID, and how frames of that VID leave by it.
type Mode uint8

const (
	Excluded Mode = iota // not a member: none leave, and none come in unless the port is Leaky
	Tagged               // with a tag
	Untagged             // without
	// Keep: as they came, like a switch without VLANs (IEEE 802.1D). A frame that came untagged or
	// with a priority tag leaves so if the VID is this port's PVID, else tagged. A frame that came
	// tagged leaves tagged. So priority tags pass, which 802.1Q does not allow.
	Keep
)

// String names m.
func (m Mode) String() string {
	return [...]string{"excluded", "tagged", "untagged", "keep"}[m&3]
}

// Accept is a port's acceptable frame types. Source: IEEE 802.1Q §6.9.
type Accept uint8

const (
	AcceptAll      Accept = iota // any
	AcceptTagged                 // with a VID other than 0: neither untagged nor priority-tagged
	AcceptUntagged               // untagged and priority-tagged
)

// Port is the configuration of a port. The zero Port is a member of nothing; see [Transparent],
// [Access] and [Trunk] for the usual ones.
type Port struct {
	PVID   transport.VID // of untagged and priority-tagged frames; 0: DefaultPVID
	Accept Accept
	// Leaky takes in frames of VIDs that the port is not a member of (ingress filtering off).
	Leaky  bool
	Modes  map[transport.VID]Mode // per VID
	Others Mode                   // of the VIDs that Modes does not name
}

// Transparent is a port in all VIDs; tags leave as they came.
func Transparent() Port {
	return Port{Modes: map[transport.VID]Mode{DefaultPVID: Keep}, Others: Tagged}
}

// Access is the port of a station without VLANs: a member of vid alone, untagged.
func Access(vid transport.VID) Port {
	return Port{PVID: vid, Modes: map[transport.VID]Mode{vid: Untagged}}
}

// Trunk is a port to another switch that carries vids, tagged, and nothing untagged.
func Trunk(vids ...transport.VID) Port {
	p := Port{Accept: AcceptTagged, Modes: make(map[transport.VID]Mode)}
	for _, vid := range vids {
		p.Modes[vid] = Tagged
	}
	return p
}

// port is a Port, prepared for look-ups by VID.
type port struct {
	mode   [transport.MaxVID + 1]Mode
	pvid   transport.VID
	accept Accept
	leaky  bool
	down   bool
}

func newPort(c Port) (*port, error) {
	p := &port{pvid: c.PVID, accept: c.Accept, leaky: c.Leaky}
	if p.pvid == 0 {
		p.pvid = DefaultPVID
	}
	if err := checkVID(p.pvid); err != nil {
		return nil, fmt.Errorf("PVID: %w", err)
	}
	if c.Accept > AcceptUntagged || c.Others > Keep {
		return nil, fmt.Errorf("accept %d, others %d: no such value", c.Accept, c.Others)
	}
	for vid := transport.VID(1); vid <= transport.MaxVID; vid++ {
		p.mode[vid] = c.Others
	}
	for vid, m := range c.Modes {
		if err := checkVID(vid); err != nil {
			return nil, err
		}
		if m > Keep {
			return nil, fmt.Errorf("mode %d of VID %d: no such value", m, vid)
		}
		p.mode[vid] = m
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
	switch m := p.mode[vid]; {
	case m == Untagged:
		return e
	case m == Keep && vid == p.pvid:
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
