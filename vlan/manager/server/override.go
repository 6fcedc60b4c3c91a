package server

import (
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Override puts pairs on VIDs whatever else is asked for, until Restore or the server's end: for
// paths that carry no frames. Programs are told at once; the reason is in the table and in the log.
// Pairs of other nodes are ignored. The other end of each pair has to do the same. A change with
// transport.Broadcast is of the node's default route, by which frames to groups and to all go.
//
// Errors are those of a change, and have changed nothing.
func (s *Server) Override(reason string, changes ...api.Change) error {
	if err := checkText("reason", reason, api.MaxReason); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return api.ErrClosed
	}
	routes, err := s.rib.Override(reason, changes)
	if err != nil {
		return err
	}
	s.changed(routes, false, nil, api.Entry{Act: actOverride, By: actOverride, Reason: reason})
	s.keepOverrides()
	s.log.Warn("overridden", "reason", reason, "pairs", len(changes), "routes", len(routes))
	return nil
}

// Restore removes the overrides of the pairs with the given nodes, or with transport.Broadcast that
// of the default route, with the reason. It ignores nodes without one.
func (s *Server) Restore(reason string, peers ...transport.MAC) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	routes := s.rib.Restore(peers...)
	s.keepOverrides()
	if len(routes) > 0 {
		s.changed(routes, false, nil, api.Entry{Act: actRestore, By: actOverride, Reason: reason})
		s.log.Info("restored", "reason", reason, "peers", len(peers), "routes", len(routes))
	}
}

// Plan returns the plan in force, which is read-only, or nil.
func (s *Server) Plan() *plan.Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rib.Plan()
}

// Routes returns this node's routes in force, and their version.
func (s *Server) Routes() (routes []vlan.Route, version api.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rib.Routes(), s.version
}

// VIDs returns the VIDs of frames to a node, or with transport.Broadcast to all: that in force, and
// what it would be without overrides. 0: they are untagged.
func (s *Server) VIDs(dst transport.MAC) (inForce, preferred transport.VID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rib.VIDs(dst)
}
