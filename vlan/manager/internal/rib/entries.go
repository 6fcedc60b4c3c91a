package rib

import (
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

func byDst(a, b vlan.Route) int { return a.Dst.Compare(b.Dst) }

// Routes returns the node's routes in force, sorted by destination. The last is the default, for
// nodes that the plan does not list. Without a plan there are none.
func (r *RIB) Routes() []vlan.Route { return r.routes(r.vid) }

// Preferred returns the routes as they would be without overrides, sorted as Routes sorts them.
func (r *RIB) Preferred() []vlan.Route { return r.routes(r.preferred) }

func (r *RIB) routes(vid func(transport.MAC) transport.VID) []vlan.Route {
	if r.plan == nil {
		return nil
	}
	routes := r.plan.Routes(r.number)
	for i, route := range routes {
		if r.peers[route.Dst] != nil {
			routes[i].Tag.VID = vid(route.Dst)
		}
	}
	slices.SortFunc(routes, byDst)
	return routes
}

// Entry is a candidate or an override that lies over the plan.
type Entry struct {
	Peer     transport.MAC
	VID      transport.VID
	Source   Source
	Override bool   // Source does not count, Reason does
	Reason   string //
	Covered  bool   // another entry is in force
}

// Entries returns all entries, sorted by peer. Of one peer's, the one in force is the first.
func (r *RIB) Entries() []Entry {
	var all []Entry
	for peer, l := range r.peers {
		var entries []Entry
		if l.override != nil {
			entries = append(entries, Entry{Peer: peer, VID: l.override.vid, Override: true, Reason: l.override.reason})
		}
		for _, c := range slices.Backward(l.candidates) {
			entries = append(entries, Entry{Peer: peer, VID: c.vid, Source: c.source})
		}
		for i := range entries[1:] {
			entries[i+1].Covered = true
		}
		all = append(all, entries...)
	}
	slices.SortStableFunc(all, func(x, y Entry) int { return x.Peer.Compare(y.Peer) })
	return all
}

// Candidates returns a source's candidates, sorted by peer.
func (r *RIB) Candidates(source Source) []Candidate {
	var all []Candidate
	for peer, l := range r.peers {
		for _, c := range l.candidates {
			if c.source == source {
				all = append(all, Candidate{Change{r.self, peer, c.vid}, c.since})
			}
		}
	}
	slices.SortFunc(all, func(x, y Candidate) int { return x.B.Compare(y.B) })
	return all
}
