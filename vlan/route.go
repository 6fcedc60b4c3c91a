package vlan

import (
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// ErrBadRoute is matched by the errors of routes that no table can hold.
var ErrBadRoute = errors.New("bad route")

// Route says which tag the frames to a destination carry, if any.
type Route struct {
	// Dst is a station, or transport.Broadcast: then the route is that of every destination without
	// one of its own, groups among them.
	Dst transport.MAC
	transport.OptionalTag
}

// Validate reports why r cannot be a route: a destination that is neither a station nor Broadcast,
// or a tag that chooses no VLAN. The error is ErrBadRoute.
func (r Route) Validate() error {
	switch {
	case r.Dst.IsZero():
		return r.bad("no station's address (want a unicast MAC, or %v for the default)", transport.Broadcast)
	case r.Dst.IsMulticast() && r.Dst != transport.Broadcast:
		return r.bad("a group (want a unicast MAC; groups take the default, %v)", transport.Broadcast)
	case !r.Tagged && r.Tag != transport.Tag{}:
		return r.bad("untagged, and with the tag %v (want one of the two)", r.Tag)
	case !r.Tagged:
		return nil
	case r.Tag.VID == 0 || r.Tag.VID > transport.MaxVID:
		return r.bad("VID %d (want 1 to %d)", r.Tag.VID, transport.MaxVID)
	case r.Tag.PCP > 7:
		return r.bad("PCP %d (want 0 to 7)", r.Tag.PCP)
	}
	return nil
}

func (r Route) bad(format string, args ...any) error {
	return fmt.Errorf("%w to %v: %s", ErrBadRoute, r.Dst, fmt.Sprintf(format, args...))
}

// String formats r as "02:00:00:00:00:01 by VID 101 PCP 1".
func (r Route) String() string {
	if !r.Tagged {
		return r.Dst.String() + " untagged"
	}
	return fmt.Sprintf("%v by %v", r.Dst, r.Tag)
}
