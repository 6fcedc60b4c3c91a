package rib

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Source is the origin of a candidate: the Operator, or a program's session by its number.
type Source uint64

// Operator is the source of candidates that outlive all sessions.
const Operator Source = 0

// RIB holds one node's plan and the candidates over it.
type RIB struct {
	self   transport.MAC
	plan   *plan.Plan            // nil: none yet
	number int                   // of this node in plan
	index  map[transport.MAC]int // of plan's nodes
	peers  map[transport.MAC]*layers
}

// layers are what lies over the plan for the pair with one other node.
type layers struct {
	override   *override
	candidates []candidate // ordered by since; at most one of each source
}

type candidate struct {
	source Source
	vid    transport.VID
	since  uint64
}

type override struct {
	vid    transport.VID
	reason string
}

// New returns the RIB of the node with address self. It has no plan.
func New(self transport.MAC) *RIB {
	return &RIB{self: self, peers: make(map[transport.MAC]*layers)}
}

// Plan returns the plan, which is read-only, or nil if there is none yet.
func (r *RIB) Plan() *plan.Plan { return r.plan }

// Dropped is a candidate that a new plan cannot fulfil.
type Dropped struct {
	Source Source
	Change
}

// CheckPlan returns why p cannot be this node's plan; the error is plan.ErrInvalid.
func (r *RIB) CheckPlan(p *plan.Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if _, listed := indexOf(p)[r.self]; !listed {
		return fmt.Errorf("%w: this node, %v, is not among its nodes (want its address among them)",
			plan.ErrInvalid, r.self)
	}
	return nil
}

// SetPlan replaces the plan and withdraws the operator's candidates: a plan states all that the
// operator asks for. Programs keep their candidates, except those for a node or a VID that p lacks;
// these are returned, sorted. An error is CheckPlan's, and has changed nothing.
func (r *RIB) SetPlan(p *plan.Plan) ([]Dropped, error) {
	if err := r.CheckPlan(p); err != nil {
		return nil, err
	}
	r.plan, r.index = p, indexOf(p)
	r.number = r.index[r.self]
	r.Withdraw(Operator)
	return r.drop(), nil
}

// Clear removes the plan and all that lies over it, and returns the programs' candidates, sorted.
func (r *RIB) Clear() []Dropped {
	r.plan, r.index = nil, nil
	r.Withdraw(Operator)
	return r.drop()
}

func indexOf(p *plan.Plan) map[transport.MAC]int {
	index := make(map[transport.MAC]int, len(p.Nodes))
	for i, n := range p.Nodes {
		index[n.MAC] = i
	}
	return index
}

// drop removes what the present plan cannot fulfil.
func (r *RIB) drop() (dropped []Dropped) {
	for peer, l := range r.peers {
		_, listed := r.index[peer]
		fits := func(vid transport.VID) bool { return listed && slices.Contains(r.plan.VIDs, vid) }
		l.candidates = slices.DeleteFunc(l.candidates, func(c candidate) bool {
			if fits(c.vid) {
				return false
			}
			dropped = append(dropped, Dropped{c.source, Change{r.self, peer, c.vid}})
			return true
		})
		if l.override != nil && !fits(l.override.vid) {
			l.override = nil
		}
		r.forget(peer)
	}
	slices.SortFunc(dropped, func(x, y Dropped) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), x.B.Compare(y.B))
	})
	return dropped
}

// forget removes a peer that nothing lies over.
func (r *RIB) forget(peer transport.MAC) {
	if l := r.peers[peer]; l.override == nil && len(l.candidates) == 0 {
		delete(r.peers, peer)
	}
}

// Add adds a source's candidates, all or, with an error, none. They lie over those of other sources
// that are as old or older; so a source that adds its candidates again, as after a restart, gets
// its old place. Add returns the routes that have changed. It checks the pairs of other nodes and
// ignores them; their number is returned, too.
func (r *RIB) Add(source Source, since uint64, changes []Change) (changed []vlan.Route, ignored int, err error) {
	if err := r.check(changes); err != nil {
		return nil, 0, err
	}
	for _, c := range changes {
		peer, own := r.peer(c)
		if !own {
			ignored++
			continue
		}
		changed = r.edit(changed, peer, func(l *layers) {
			l.put(candidate{source, c.VID, since})
		})
	}
	return changed, ignored, nil
}

// put inserts a candidate by its age, in place of the source's earlier one.
func (l *layers) put(c candidate) {
	l.candidates = slices.DeleteFunc(l.candidates, of(c.source))
	at := slices.IndexFunc(l.candidates, func(other candidate) bool { return other.since > c.since })
	if at < 0 {
		at = len(l.candidates)
	}
	l.candidates = slices.Insert(l.candidates, at, c)
}

func of(source Source) func(candidate) bool {
	return func(c candidate) bool { return c.source == source }
}

// Withdraw removes all candidates of a source, and returns the routes that have changed, sorted.
func (r *RIB) Withdraw(source Source) (changed []vlan.Route) {
	for peer, l := range r.peers {
		if slices.ContainsFunc(l.candidates, of(source)) {
			changed = r.edit(changed, peer, func(l *layers) {
				l.candidates = slices.DeleteFunc(l.candidates, of(source))
			})
		}
	}
	slices.SortFunc(changed, byDst)
	return changed
}

// Override puts changes above all candidates, with the reason, all or, with an error, none. It
// returns the routes that have changed, and ignores pairs of other nodes.
func (r *RIB) Override(reason string, changes []Change) (changed []vlan.Route, err error) {
	if err := r.check(changes); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if peer, own := r.peer(c); own {
			changed = r.edit(changed, peer, func(l *layers) { l.override = &override{c.VID, reason} })
		}
	}
	return changed, nil
}

// Restore removes the overrides of the pairs with the given nodes, and returns the routes that have
// changed. It ignores nodes without an override.
func (r *RIB) Restore(peers ...transport.MAC) (changed []vlan.Route) {
	for _, peer := range peers {
		if l := r.peers[peer]; l != nil && l.override != nil {
			changed = r.edit(changed, peer, func(l *layers) { l.override = nil })
		}
	}
	return changed
}

// edit changes the layers of a peer, and appends its route if that has changed.
func (r *RIB) edit(changed []vlan.Route, peer transport.MAC, f func(*layers)) []vlan.Route {
	l := r.peers[peer]
	if l == nil {
		l = new(layers)
		r.peers[peer] = l
	}
	before := r.vid(peer)
	f(l)
	after := r.vid(peer)
	r.forget(peer)
	if after == before || r.plan == nil {
		return changed
	}
	return append(changed, r.route(peer, after))
}

// peer returns the other node of a pair if one of the two is this node.
func (r *RIB) peer(c Change) (transport.MAC, bool) {
	switch r.self {
	case c.A:
		return c.B, true
	case c.B:
		return c.A, true
	}
	return transport.MAC{}, false
}

// vid is the VID in force with a peer; 0 if the plan does not list the peer.
func (r *RIB) vid(peer transport.MAC) transport.VID {
	if l := r.peers[peer]; l != nil && l.override != nil {
		if _, listed := r.index[peer]; listed {
			return l.override.vid
		}
	}
	return r.preferred(peer)
}

// preferred is the VID of a peer without its override.
func (r *RIB) preferred(peer transport.MAC) transport.VID {
	n, listed := r.index[peer]
	if !listed {
		return 0
	}
	if l := r.peers[peer]; l != nil && len(l.candidates) > 0 {
		return l.candidates[len(l.candidates)-1].vid
	}
	return r.plan.PairVID(r.number, n)
}

func (r *RIB) route(dst transport.MAC, vid transport.VID) vlan.Route {
	return vlan.Route{Dst: dst, OptionalTag: transport.Tagged(transport.Tag{VID: vid, PCP: r.plan.PCP})}
}
