package rib

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Source is the origin of a candidate: the Operator, a program's session by its number, or the
// Failover.
type Source uint64

const (
	// Operator is the source of candidates that outlive all sessions.
	Operator Source = 0
	// Failover is the source of overrides: candidates above all others.
	Failover Source = math.MaxUint64
)

// Candidate asks for the VID of the pair with node B; A is the RIB's own node. Of two candidates
// for one pair, the one with the larger Since is in force. Of the Failover B may be
// transport.Broadcast: then the VID is that of the default route.
type Candidate struct {
	Change
	Since  uint64 `json:"since,omitempty"`
	Source Source `json:"-"`
	Reason string `json:"-"` // of an override
}

// RIB holds one node's plan and the candidates over it.
type RIB struct {
	self   transport.MAC
	plan   *plan.Plan            // nil: none yet
	number int                   // of this node in plan
	index  map[transport.MAC]int // of plan's nodes
	// peers holds what lies over the plan, by the other node: ordered by Since, at most one of each
	// source, and no empty list.
	peers map[transport.MAC][]Candidate
}

// New returns the RIB of the node with address self. It has no plan.
func New(self transport.MAC) *RIB {
	return &RIB{self: self, peers: make(map[transport.MAC][]Candidate)}
}

// Plan returns the plan, which is read-only, or nil if there is none yet.
func (r *RIB) Plan() *plan.Plan { return r.plan }

// SetPlan replaces the plan and withdraws the operator's candidates: a plan states all that the
// operator asks for. Programs keep their candidates, except those for a node or a VID that p lacks;
// these are returned, sorted. The error is plan.ErrInvalid, if p cannot be this node's plan, and
// has changed nothing.
func (r *RIB) SetPlan(p *plan.Plan) (dropped []Candidate, err error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	index := make(map[transport.MAC]int, len(p.Nodes))
	for i, n := range p.Nodes {
		index[n.MAC] = i
	}
	number, listed := index[r.self]
	if !listed {
		return nil, fmt.Errorf("%w: this node, %v, is not among its nodes (want its address among them)",
			plan.ErrInvalid, r.self)
	}
	r.plan, r.index, r.number = p, index, number
	return r.drop(), nil
}

// Clear removes the plan and all that lies over it, and returns the programs' candidates, sorted.
func (r *RIB) Clear() (dropped []Candidate) {
	r.plan, r.index = nil, nil
	return r.drop()
}

// drop removes the operator's candidates and what the present plan cannot fulfil, and returns what
// that takes from programs.
func (r *RIB) drop() (dropped []Candidate) {
	for peer, all := range r.peers {
		_, listed := r.planned(peer)
		r.set(peer, slices.DeleteFunc(all, func(c Candidate) bool {
			fits := listed && slices.Contains(r.plan.VIDs, c.VID)
			if !fits && c.Source != Operator && c.Source != Failover {
				dropped = append(dropped, c)
			}
			return !fits || c.Source == Operator
		}))
	}
	slices.SortFunc(dropped, func(x, y Candidate) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), x.B.Compare(y.B))
	})
	return dropped
}

// set replaces the candidates for the pair with a peer.
func (r *RIB) set(peer transport.MAC, candidates []Candidate) {
	if len(candidates) == 0 {
		delete(r.peers, peer)
		return
	}
	r.peers[peer] = candidates
}

// Add adds a source's candidates, all or, with an error, none. They lie over those of other sources
// that are as old or older; so a source that adds its candidates again, as after a restart, gets
// its old place. Add returns the routes that have changed. It checks the pairs of other nodes and
// ignores them; their number is returned, too.
func (r *RIB) Add(source Source, since uint64, changes []Change) (changed []vlan.Route, ignored int, err error) {
	return r.add(Candidate{Source: source, Since: since}, changes)
}

// Override puts changes above all candidates, with the reason, all or, with an error, none. It
// returns the routes that have changed, and ignores pairs of other nodes. A change with
// transport.Broadcast is of the node's default route.
func (r *RIB) Override(reason string, changes []Change) (changed []vlan.Route, err error) {
	changed, _, err = r.add(Candidate{Source: Failover, Since: math.MaxUint64, Reason: reason}, changes)
	return changed, err
}

func (r *RIB) add(c Candidate, changes []Change) (changed []vlan.Route, ignored int, err error) {
	if err := r.check(changes, c.Source == Failover); err != nil {
		return nil, 0, err
	}
	for _, change := range changes {
		peer, own := change.Peer(r.self)
		if !own {
			ignored++
			continue
		}
		c.Change = Change{r.self, peer, change.VID}
		changed = r.edit(changed, peer, func(all []Candidate) []Candidate {
			all = without(all, c.Source)
			younger := slices.IndexFunc(all, func(other Candidate) bool { return other.Since > c.Since })
			if younger < 0 {
				return append(all, c)
			}
			return slices.Insert(all, younger, c)
		})
	}
	return changed, ignored, nil
}

func without(all []Candidate, source Source) []Candidate {
	return slices.DeleteFunc(all, func(c Candidate) bool { return c.Source == source })
}

// Withdraw removes all candidates of a source, and returns the routes that have changed, sorted.
func (r *RIB) Withdraw(source Source) (changed []vlan.Route) {
	return r.withdraw(source, slices.Collect(maps.Keys(r.peers)))
}

// Restore removes the overrides of the pairs with the given nodes, and returns the routes that have
// changed, sorted. It ignores nodes without an override.
func (r *RIB) Restore(peers ...transport.MAC) (changed []vlan.Route) {
	return r.withdraw(Failover, peers)
}

func (r *RIB) withdraw(source Source, peers []transport.MAC) (changed []vlan.Route) {
	for _, peer := range peers {
		changed = r.edit(changed, peer, func(all []Candidate) []Candidate { return without(all, source) })
	}
	slices.SortFunc(changed, byDst)
	return changed
}

// edit changes the candidates for the pair with a peer, and appends its route if that has changed.
func (r *RIB) edit(changed []vlan.Route, peer transport.MAC, f func([]Candidate) []Candidate) []vlan.Route {
	before := r.vid(peer, true)
	r.set(peer, f(r.peers[peer]))
	after := r.vid(peer, true)
	if after == before {
		return changed
	}
	tag := transport.Tag{VID: after, PCP: r.plan.PCP}
	return append(changed, vlan.Route{Dst: peer, OptionalTag: transport.Tagged(tag)})
}

// planned is the plan's VID for frames to a peer, or of the default route. ok is false if the plan
// does not list the peer.
func (r *RIB) planned(peer transport.MAC) (vid transport.VID, ok bool) {
	switch n, listed := r.index[peer]; {
	case listed:
		return r.plan.PairVID(r.number, n), true
	case peer == transport.Broadcast && r.plan != nil:
		return r.plan.Nodes[r.number].VID, true
	}
	return 0, false
}

// vid is the VID with a peer, or of the default route, overridden or not; 0 if the plan does not
// list the peer.
func (r *RIB) vid(peer transport.MAC, overridden bool) transport.VID {
	planned, listed := r.planned(peer)
	if !listed {
		return 0
	}
	for _, c := range slices.Backward(r.peers[peer]) {
		if overridden || c.Source != Failover {
			return c.VID
		}
	}
	return planned
}

func byDst(a, b vlan.Route) int { return a.Dst.Compare(b.Dst) }

// VIDs returns the VIDs of frames to a node, or to all: that in force, and what it would be without
// overrides. Both are 0 without a plan.
func (r *RIB) VIDs(dst transport.MAC) (inForce, preferred transport.VID) {
	if _, listed := r.index[dst]; !listed {
		dst = transport.Broadcast
	}
	return r.vid(dst, true), r.vid(dst, false)
}

// Routes returns the node's routes in force, sorted by destination. The last is the default, for
// nodes that the plan does not list. Without a plan there are none.
func (r *RIB) Routes() []vlan.Route {
	if r.plan == nil {
		return nil
	}
	routes := r.plan.Routes(r.number)
	for i, route := range routes {
		if r.peers[route.Dst] != nil {
			routes[i].Tag.VID = r.vid(route.Dst, true)
		}
	}
	slices.SortFunc(routes, byDst)
	return routes
}

// Candidates returns all candidates and overrides, sorted by peer. Of one peer's, the one in force
// is the first.
func (r *RIB) Candidates() (all []Candidate) {
	for _, peer := range slices.SortedFunc(maps.Keys(r.peers), transport.MAC.Compare) {
		for _, c := range slices.Backward(r.peers[peer]) {
			all = append(all, c)
		}
	}
	return all
}

// Of returns a source's candidates, sorted by peer.
func (r *RIB) Of(source Source) []Candidate {
	return slices.DeleteFunc(r.Candidates(), func(c Candidate) bool { return c.Source != source })
}
