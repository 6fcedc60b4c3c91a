package failover

import (
	"sync"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// Routes are a node's routes, and a failover's overrides over them.
type Routes interface {
	// VIDs returns the VIDs of frames to a peer: that in force, and what it would be without
	// overrides. 0: they are untagged.
	VIDs(peer transport.MAC) (inForce, preferred transport.VID)
	// Override has frames to a peer go by a VID until Restore.
	Override(peer transport.MAC, vid transport.VID, reason string) error
	// Restore has frames to a peer go by its preferred route again.
	Restore(peer transport.MAC, reason string) error
}

// Table returns the routes of a table. An override keeps the route's priority. A restored route is
// as it was before the first override, or as the program has set it since; a peer that had the
// default route then has a route of its own.
func Table(t *vlan.Table) Routes {
	return &tableRoutes{table: t, overrides: make(map[transport.MAC]override)}
}

type tableRoutes struct {
	table *vlan.Table

	mu        sync.Mutex // guards overrides
	overrides map[transport.MAC]override
}

// override is a route in place of another one.
type override struct {
	was, is vlan.Route
	changes uint64 // of the table, once it was set
}

// isInForce reports whether nobody has set another route since, be it the same one: that is the
// program's own. The caller holds mu.
func (r *tableRoutes) isInForce(o override) bool {
	return r.route(o.is.Dst) == o.is && r.table.Changes(o.is.Dst) == o.changes
}

func (r *tableRoutes) VIDs(peer transport.MAC) (inForce, preferred transport.VID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.route(peer)
	before := now
	if o, ok := r.overrides[peer]; ok && r.isInForce(o) {
		before = o.was
	}
	return vidOf(now), vidOf(before)
}

// vidOf is the VID of frames that go by a route; 0: they are untagged.
func vidOf(r vlan.Route) transport.VID {
	if !r.Tagged {
		return 0
	}
	return r.Tag.VID
}

func (r *tableRoutes) Override(peer transport.MAC, vid transport.VID, _ string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.route(peer)
	o := override{was: now, is: now}
	o.is.Tagged, o.is.Tag.VID = true, vid
	if before, again := r.overrides[peer]; again && r.isInForce(before) {
		o.was = before.was
	}
	if err := r.table.Set(o.is); err != nil {
		return err
	}
	o.changes = r.table.Changes(peer)
	r.overrides[peer] = o
	return nil
}

func (r *tableRoutes) Restore(peer transport.MAC, _ string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := r.overrides[peer]; ok && r.isInForce(o) {
		if err := r.table.Set(o.was); err != nil {
			return err
		}
	}
	delete(r.overrides, peer)
	return nil
}

func (r *tableRoutes) route(peer transport.MAC) vlan.Route {
	return vlan.Route{Dst: peer, OptionalTag: r.table.Route(peer)}
}

// Manager returns the routes of a node's manager, which tells all programs of the node, and shows
// the watched paths in its health and metrics. self is the node's address.
func Manager(s *server.Server, self transport.MAC) Routes { return &managerRoutes{s, self} }

type managerRoutes struct {
	*server.Server
	self transport.MAC
}

func (r *managerRoutes) Override(peer transport.MAC, vid transport.VID, reason string) error {
	return r.Server.Override(reason, api.Change{A: r.self, B: peer, VID: vid})
}

func (r *managerRoutes) Restore(peer transport.MAC, reason string) error {
	r.Server.Restore(reason, peer)
	return nil
}
