package failover

import (
	"sync"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// Routes are a node's routes, and a failover's overrides over them. The peer transport.Broadcast
// stands for the default route, by which frames to groups and to all go.
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
// default route then has a route of its own, and so has each once the default is overridden.
func Table(t *vlan.Table) Routes {
	return &tableRoutes{table: t, overrides: make(map[transport.MAC]override)}
}

type tableRoutes struct {
	table *vlan.Table

	mu        sync.Mutex // guards overrides
	overrides map[transport.MAC]override
}

// override is a tag in place of another one.
type override struct {
	was, is transport.OptionalTag
	changes uint64 // of the table, once it was set
}

// isInForce reports whether nobody has set another route since, be it the same one: that is the
// program's own.
func (o override) isInForce(now transport.OptionalTag, changes uint64) bool {
	return now == o.is && changes == o.changes
}

func (r *tableRoutes) VIDs(peer transport.MAC) (inForce, preferred transport.VID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.table.Update(peer, func(now transport.OptionalTag, changes uint64) (transport.OptionalTag, bool) {
		inForce, preferred = vidOf(now), vidOf(r.preferred(peer, now, changes))
		return now, false
	})
	return inForce, preferred
}

// pin gives those of the peers that have the default route a route of their own by the same tag: an
// override of the default is not theirs.
func (r *tableRoutes) pin(peers []transport.MAC) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := make(map[transport.MAC]bool)
	for _, route := range r.table.Routes() {
		own[route.Dst] = true
	}
	for _, peer := range peers {
		if own[peer] {
			continue
		}
		same := func(now transport.OptionalTag, _ uint64) (transport.OptionalTag, bool) { return now, true }
		if _, err := r.table.Update(peer, same); err != nil {
			return err
		}
	}
	return nil
}

// preferred returns the tag that frames to a peer would have without overrides. The caller holds
// mu.
func (r *tableRoutes) preferred(peer transport.MAC, now transport.OptionalTag, changes uint64) transport.OptionalTag {
	if o, ok := r.overrides[peer]; ok && o.isInForce(now, changes) {
		return o.was
	}
	return now
}

// vidOf is the VID of frames with a tag; 0: they are untagged.
func vidOf(t transport.OptionalTag) transport.VID {
	if !t.Tagged {
		return 0
	}
	return t.Tag.VID
}

func (r *tableRoutes) Override(peer transport.MAC, vid transport.VID, _ string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var o override
	changes, err := r.table.Update(peer, func(now transport.OptionalTag, changes uint64) (transport.OptionalTag, bool) {
		o.was, o.is = r.preferred(peer, now, changes), now
		o.is.Tagged, o.is.Tag.VID = true, vid
		return o.is, true
	})
	if err != nil {
		return err
	}
	o.changes = changes
	r.overrides[peer] = o
	return nil
}

func (r *tableRoutes) Restore(peer transport.MAC, _ string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.overrides[peer]
	if !ok {
		return nil
	}
	_, err := r.table.Update(peer, func(now transport.OptionalTag, changes uint64) (transport.OptionalTag, bool) {
		return o.was, o.isInForce(now, changes)
	})
	if err == nil {
		delete(r.overrides, peer)
	}
	return err
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
