package vlan

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

const (
	// MaxRoutes bounds the destinations of a Table: 4,096 nodes, and the default.
	MaxRoutes = maxNodes + 1

	// MaxCounts bounds the counts of a Table, one for each destination and VID that ever had a route: 64 VIDs for each of
	// 4,096 destinations. Each takes 32 bytes.
	MaxCounts = 64 * maxNodes

	// maxNodes is how many nodes a plan can have.
	maxNodes = 4096
)

// ErrBadRoute is matched by the errors of routes that no table can hold.
var ErrBadRoute = errors.New("bad route")

// Route says which tag frames to a destination carry.
type Route struct {
	// Dst is a station, or transport.Broadcast: then the route is that of every destination without one of its own,
	// groups among them.
	Dst transport.MAC
	Tag transport.Tag
	// Untagged frames carry no tag at all; Tag must be zero.
	Untagged bool
}

// Validate reports why r cannot be a route: a destination that is neither a station nor Broadcast, or a tag that chooses
// no VLAN. The error is ErrBadRoute.
func (r Route) Validate() error {
	switch {
	case r.Dst.IsZero():
		return fmt.Errorf("%w to %v: no station's address (want a unicast MAC, or %v for the default)", ErrBadRoute, r.Dst, transport.Broadcast)
	case r.Dst.IsMulticast() && r.Dst != transport.Broadcast:
		return fmt.Errorf("%w to %v: a group (want a unicast MAC; groups take the default, %v)", ErrBadRoute, r.Dst, transport.Broadcast)
	case r.Untagged && r.Tag != transport.Tag{}:
		return fmt.Errorf("%w to %v: untagged, and with the tag %v (want one of the two)", ErrBadRoute, r.Dst, r.Tag)
	case r.Untagged:
		return nil
	case r.Tag.VID == 0 || r.Tag.VID > transport.MaxVID:
		return fmt.Errorf("%w to %v: VID %d (want 1 to %d)", ErrBadRoute, r.Dst, r.Tag.VID, transport.MaxVID)
	case r.Tag.PCP > 7:
		return fmt.Errorf("%w to %v: PCP %d (want 0 to 7)", ErrBadRoute, r.Dst, r.Tag.PCP)
	}
	return nil
}

// String formats r as "02:00:00:00:00:01 by VID 101 PCP 1".
func (r Route) String() string {
	if r.Untagged {
		return r.Dst.String() + " untagged"
	}
	return fmt.Sprintf("%v by %v", r.Dst, r.Tag)
}

// Table is a Router that a node sends by and that can be changed meanwhile. Destinations without a route of their own go
// by the default one, that of transport.Broadcast; without it, untagged.
//
// Readers take no lock and are never held up: they see the routes of before a change or of after it. Route costs a few
// nanoseconds and allocates nothing. All methods may be called from any goroutine. Make tables with NewTable.
//
// Source: VFREC §2.3, §4.1.
type Table struct {
	now atomic.Pointer[routing]
}

var _ Counting = (*Table)(nil)

// NewTable returns a table of the given routes, of which no two may have the same destination. The error is
// ErrBadRoute.
func NewTable(routes []Route) (*Table, error) {
	t := new(Table)
	t.now.Store(newRouting(len(routes)))
	if err := t.Replace(routes); err != nil {
		return nil, err
	}
	return t, nil
}

// Route returns the tag of frames to dst: by the route that is in force at some moment during the call.
func (t *Table) Route(dst transport.MAC) transport.OptionalTag {
	e := t.now.Load().route(keyOf(dst))
	return transport.OptionalTag{Tagged: e.state == tagged, Tag: e.tag}
}

// Generation returns a number that is another one after each change.
func (t *Table) Generation() uint64 { return t.now.Load().generation }

// Counter returns where to count frames that go to dst by the present route: by dst and VID or, if dst has no route of
// its own, by the default and its VID. A route that comes back to a VID is counted on where it was before.
// Source: VFREC §4.1.
func (t *Table) Counter(dst transport.MAC) *Count {
	return t.now.Load().route(keyOf(dst)).count
}

// Replace makes routes the table's only ones, all at once. With an error, which is ErrBadRoute, the old ones stay in
// force.
func (t *Table) Replace(routes []Route) error { return t.change((*routing).nextWithout, routes) }

// Set changes or adds the given routes, all at once, and leaves the others as they are. With an error, which is
// ErrBadRoute, the old ones stay in force.
func (t *Table) Set(routes ...Route) error { return t.change((*routing).next, routes) }

// change brings routes into force on top of what start takes over from the present state. Of several that change a
// table at once, all but one begin again.
func (t *Table) change(start func(*routing) *routing, routes []Route) error {
	for {
		old := t.now.Load()
		next := start(old)
		if err := next.apply(routes); err != nil {
			return err
		}
		if t.now.CompareAndSwap(old, next) {
			return nil
		}
	}
}

// Routes returns the routes in force, sorted by destination: the default is the last.
func (t *Table) Routes() []Route {
	r := t.now.Load()
	routes := make([]Route, 0, r.routes)
	r.entries(func(e *entry) {
		if e.state != gone {
			routes = append(routes, Route{Dst: macOf(e.dst), Tag: e.tag, Untagged: e.state == untagged})
		}
	})
	slices.SortFunc(routes, func(a, b Route) int { return a.Dst.Compare(b.Dst) })
	return routes
}
