package vlan

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

const (
	// MaxRoutes bounds the routes of a Table: one for each of 4,096 nodes, and the default.
	MaxRoutes = 4096 + 1

	// MaxCounts bounds the counts of a Table, one for each destination and VID that ever had a
	// route: 64 VIDs for each of 4,096 nodes.
	MaxCounts = 64 * 4096
)

// Table is a Router whose routes can be changed while frames are sent. Destinations without a route
// of their own go by the default one, that of transport.Broadcast; without it, untagged.
//
// Readers take no lock and are never held up. A change of several routes comes into force one
// destination after the other, within microseconds; that of one destination at once. All methods
// may be called from any goroutine.
//
// Source: VFREC §2.3, §4.1.
type Table struct {
	fallback Destination // the default; it always has a route
	known    atomic.Pointer[map[transport.MAC]*Destination]

	mu     sync.Mutex // serialises changes; guards what follows
	routes int        // in force
	counts int        // ever made
}

var _ Router = (*Table)(nil)

// NewTable returns a table of the given routes, of which no two may have the same destination. The
// error is ErrBadRoute.
func NewTable(routes []Route) (*Table, error) {
	t := &Table{}
	t.fallback = Destination{table: t, mac: transport.Broadcast}
	t.known.Store(&map[transport.MAC]*Destination{})
	if err := t.Replace(routes); err != nil {
		return nil, err
	}
	return t, nil
}

// Route returns the tag of frames to dst.
func (t *Table) Route(dst transport.MAC) transport.OptionalTag {
	tag, _ := t.find(dst).Route()
	return tag
}

// Counter returns where frames to dst by the present route are counted: by dst and VID or, if dst
// has no route of its own, by the default and its VID. A route that comes back to a VID counts on
// from before.
//
// Source: VFREC §4.1.
func (t *Table) Counter(dst transport.MAC) *Count {
	_, count := t.find(dst).Route()
	return count
}

// find returns the destination that dst's frames go by.
func (t *Table) find(dst transport.MAC) *Destination {
	if d := (*t.known.Load())[dst]; d != nil {
		return d
	}
	return &t.fallback
}

// Destinations returns the table's entries for these addresses, in order, and makes those that are
// missing. A sender keeps them, and reads the present route from one without a look-up.
func (t *Table) Destinations(dsts ...transport.MAC) []*Destination {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.destinations(dsts)
}

func (t *Table) destinations(dsts []transport.MAC) []*Destination {
	known, copied := *t.known.Load(), false
	all := make([]*Destination, len(dsts))
	for i, dst := range dsts {
		d := known[dst]
		if dst == transport.Broadcast {
			d = &t.fallback
		}
		if d == nil {
			if !copied {
				known, copied = maps.Clone(known), true
			}
			d = &Destination{table: t, mac: dst}
			known[dst] = d
		}
		all[i] = d
	}
	if copied {
		t.known.Store(&known)
	}
	return all
}

// Routes returns the routes in force, sorted by destination: the default is the last.
func (t *Table) Routes() []Route {
	t.mu.Lock()
	defer t.mu.Unlock()
	routes := make([]Route, 0, t.routes)
	for d := range t.all {
		if d.own {
			tag, _ := d.Route()
			routes = append(routes, Route{d.mac, tag})
		}
	}
	slices.SortFunc(routes, func(a, b Route) int { return a.Dst.Compare(b.Dst) })
	return routes
}

// all yields the destinations, the default last. The caller holds mu.
func (t *Table) all(yield func(*Destination) bool) {
	for _, d := range *t.known.Load() {
		if !yield(d) {
			return
		}
	}
	yield(&t.fallback)
}

// Changes returns how many times a route to dst itself was set or taken out; to set the one that is
// in force counts as well. A caller that has set a route learns by it that another one has been
// set since.
func (t *Table) Changes(dst transport.MAC) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes(dst)
}

func (t *Table) changes(dst transport.MAC) uint64 {
	d := t.find(dst)
	if d.mac != dst {
		return 0
	}
	return d.changes
}

// Set changes or adds the given routes and leaves the others as they are. With an error, which is
// ErrBadRoute, all old ones stay in force. To change the route of a known destination to a tag that
// it has had before allocates nothing.
func (t *Table) Set(routes ...Route) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(routes) == 1 {
		if d := t.find(routes[0].Dst); d.mac == routes[0].Dst && d.switchTo(routes[0]) {
			return nil
		}
	}
	return t.change(routes, false)
}

// Update makes the tag of frames to dst what f makes of it, in one step: nobody changes the table
// between the look at it and the change. f is given the tag that such frames have now, be it the
// default one, and Changes; it must call no method of the table. If it returns false, nothing
// changes. Update returns Changes as it is then. Errors as for Set.
func (t *Table) Update(
	dst transport.MAC, f func(now transport.OptionalTag, changes uint64) (next transport.OptionalTag, change bool),
) (changes uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, _ := t.find(dst).Route()
	tag, change := f(now, t.changes(dst))
	if change {
		err = t.change([]Route{{dst, tag}}, false)
	}
	return t.changes(dst), err
}

// Replace makes routes the table's only ones. With an error, which is ErrBadRoute, the old ones
// stay in force.
func (t *Table) Replace(routes []Route) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.change(routes, true)
}

// change brings routes into force, and with alone takes all others out, if nothing is wrong with
// any of them. The caller holds mu.
func (t *Table) change(routes []Route, alone bool) error {
	mine, err := t.check(routes, alone)
	if err != nil {
		return err
	}
	dsts := make([]transport.MAC, len(routes))
	for i, r := range routes {
		dsts[i] = r.Dst
	}
	for i, d := range t.destinations(dsts) {
		d.set(routes[i].OptionalTag)
	}
	if alone {
		for d := range t.all {
			if !mine[d.mac] {
				d.unset()
			}
		}
	}
	return nil
}

// check reports what is wrong with routes, before anything is changed, and returns their
// destinations.
func (t *Table) check(routes []Route, alone bool) (mine map[transport.MAC]bool, err error) {
	mine = make(map[transport.MAC]bool, len(routes))
	total, counts := t.routes, t.counts
	if alone {
		total = 0
	}
	for _, r := range routes {
		if err := r.Validate(); err != nil {
			return nil, err
		}
		if mine[r.Dst] {
			return nil, fmt.Errorf("%w to %v: given twice (want one for each destination)", ErrBadRoute, r.Dst)
		}
		mine[r.Dst] = true
		d := t.find(r.Dst)
		if d.mac != r.Dst {
			d = nil
		}
		if alone || d == nil || !d.own {
			total++
		}
		if d == nil || d.count(r.Tag.VID) == nil {
			counts++
		}
	}
	if alone && !mine[transport.Broadcast] && t.fallback.count(0) == nil {
		counts++ // of frames without a route, which go untagged
	}
	switch {
	case total > MaxRoutes:
		return nil, fmt.Errorf("%w: %d of them (want at most %d in a table)", ErrBadRoute, total, MaxRoutes)
	case counts > MaxCounts:
		return nil, fmt.Errorf("%w: the table has counted for %d pairs of destination and VID and is full"+
			" (make a new table)", ErrBadRoute, MaxCounts)
	}
	return mine, nil
}
