package failover

import (
	"maps"
	"sync"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// Routes is a node's routes as a failover changes them: over whatever else is wished for.
type Routes interface {
	// Routes returns the routes in force.
	Routes() []vlan.Route
	// Force has frames to a peer go by a VID until Restore.
	Force(peer transport.MAC, vid transport.VID, reason string) error
	// Restore has them go where else they would.
	Restore(peer transport.MAC, reason string) error
}

// Table returns the routes of a table. A route that was forced keeps its priority. One that is
// restored is as it was when it was forced first, or as the program has set it since; a peer that
// had the default route then has one of its own.
func Table(t *vlan.Table) Routes {
	return &tableRoutes{table: t, forced: make(map[transport.MAC]forced)}
}

type tableRoutes struct {
	table *vlan.Table

	mu     sync.Mutex // guards forced
	forced map[transport.MAC]forced
}

// forced is a route that was forced, and the one that it took the place of.
type forced struct{ was, is vlan.Route }

func (r *tableRoutes) Routes() []vlan.Route { return r.table.Routes() }

func (r *tableRoutes) Force(peer transport.MAC, vid transport.VID, _ string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.route(peer)
	f := forced{was: now, is: now}
	f.is.Tag.VID, f.is.Tagged = vid, true
	if err := r.table.Set(f.is); err != nil {
		return err
	}
	if before, again := r.forced[peer]; again && before.is == now {
		f.was = before.was
	}
	r.forced[peer] = f
	return nil
}

func (r *tableRoutes) Restore(peer transport.MAC, _ string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.forced[peer]
	delete(r.forced, peer)
	if !ok || f.is != r.route(peer) {
		return nil
	}
	return r.table.Set(f.was)
}

func (r *tableRoutes) route(peer transport.MAC) vlan.Route {
	return vlan.Route{Dst: peer, OptionalTag: r.table.Route(peer)}
}

// Manager returns the routes of a node's manager, which tells all programs of the node. self is the
// node's address.
func Manager(s *server.Server, self transport.MAC) Routes { return &managerRoutes{s, self} }

type managerRoutes struct {
	server *server.Server
	self   transport.MAC
}

func (r *managerRoutes) Routes() []vlan.Route {
	routes, _ := r.server.Routes()
	return routes
}

func (r *managerRoutes) Force(peer transport.MAC, vid transport.VID, reason string) error {
	return r.server.Override(reason, api.Change{A: r.self, B: peer, VID: vid})
}

func (r *managerRoutes) Restore(peer transport.MAC, reason string) error {
	r.server.Restore(reason, peer)
	return nil
}

// vidsOf returns by which VID frames to each of the peers go. Peers to which frames go untagged are
// left out.
func vidsOf(routes []vlan.Route, peers []transport.MAC) map[transport.MAC]transport.VID {
	vids := make(map[transport.MAC]transport.VID, len(peers))
	var byDefault transport.VID
	for _, r := range routes {
		if r.Dst == transport.Broadcast {
			byDefault = r.Tag.VID
		}
	}
	for _, p := range peers {
		vids[p] = byDefault
	}
	for _, r := range routes {
		if _, peer := vids[r.Dst]; peer {
			vids[r.Dst] = r.Tag.VID // 0 if it is untagged
		}
	}
	maps.DeleteFunc(vids, func(_ transport.MAC, vid transport.VID) bool { return vid == 0 })
	return vids
}
