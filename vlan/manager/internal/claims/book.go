package claims

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"

	"github.com/rawlane/rawlane/vlan/plan"
)

// Owner is who holds a claim: the Operator, or a program's session by its number.
type Owner uint64

// Operator is the owner of claims that no program's end takes back.
const Operator Owner = 0

// Book holds one node's plan and the wishes that lie over it.
type Book struct {
	self   transport.MAC
	plan   *plan.Plan            // nil: none yet
	number int                   // of this node in plan
	index  map[transport.MAC]int // of plan's nodes
	peers  map[transport.MAC]*wishes
}

// wishes are what lies over the plan for the pair with one other node.
type wishes struct {
	forced *forced
	claims []claim // by since; an owner has one at most
}

type claim struct {
	owner Owner
	vid   transport.VID
	since uint64
}

type forced struct {
	vid    transport.VID
	reason string
}

// New returns the book of the node with address self. It has no plan.
func New(self transport.MAC) *Book {
	return &Book{self: self, peers: make(map[transport.MAC]*wishes)}
}

// Plan returns the plan, which nobody may change, or nil if there is none yet.
func (b *Book) Plan() *plan.Plan { return b.plan }

// Dropped is a claim that a new plan cannot fulfil.
type Dropped struct {
	Owner Owner
	Change
}

// CheckPlan returns why p cannot be this node's plan; the error is plan.ErrInvalid.
func (b *Book) CheckPlan(p *plan.Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if _, listed := indexOf(p)[b.self]; !listed {
		return fmt.Errorf("%w: this node, %v, is not among its nodes (want its address among them)", plan.ErrInvalid, b.self)
	}
	return nil
}

// SetPlan replaces the plan, with which the operator's claims go: the plan is all that he wants. Programs keep their claims, but
// for those that name a node or a VID which is not in p; these are returned, sorted. An error is CheckPlan's, and has changed nothing.
func (b *Book) SetPlan(p *plan.Plan) ([]Dropped, error) {
	if err := b.CheckPlan(p); err != nil {
		return nil, err
	}
	b.plan, b.index = p, indexOf(p)
	b.number = b.index[b.self]
	b.Release(Operator)
	return b.drop(), nil
}

// Clear takes the plan and all wishes away, and returns the programs' claims, sorted.
func (b *Book) Clear() []Dropped {
	b.plan, b.index = nil, nil
	b.Release(Operator)
	return b.drop()
}

func indexOf(p *plan.Plan) map[transport.MAC]int {
	index := make(map[transport.MAC]int, len(p.Nodes))
	for i, n := range p.Nodes {
		index[n.MAC] = i
	}
	return index
}

// drop removes what the present plan cannot fulfil.
func (b *Book) drop() (dropped []Dropped) {
	for peer, w := range b.peers {
		_, listed := b.index[peer]
		fits := func(vid transport.VID) bool { return listed && slices.Contains(b.plan.VIDs, vid) }
		w.claims = slices.DeleteFunc(w.claims, func(c claim) bool {
			if fits(c.vid) {
				return false
			}
			dropped = append(dropped, Dropped{c.owner, Change{b.self, peer, c.vid}})
			return true
		})
		if w.forced != nil && !fits(w.forced.vid) {
			w.forced = nil
		}
		b.forget(peer)
	}
	slices.SortFunc(dropped, func(x, y Dropped) int { return cmp.Or(cmp.Compare(x.Owner, y.Owner), x.B.Compare(y.B)) })
	return dropped
}

// forget removes a peer that nobody has a wish about.
func (b *Book) forget(peer transport.MAC) {
	if w := b.peers[peer]; w.forced == nil && len(w.claims) == 0 {
		delete(b.peers, peer)
	}
}

// Claim takes an owner's claims in, all or, with an error, none. They lie over those of others that were made earlier or at the same time; so
// an owner that says again what it had claimed before, as after a restart, is given its old place. It returns the routes that have changed
// by it. Pairs of other nodes are checked and ignored; their number is returned, too.
func (b *Book) Claim(owner Owner, since uint64, changes []Change) (changed []vlan.Route, ignored int, err error) {
	if err := b.check(changes); err != nil {
		return nil, 0, err
	}
	for _, c := range changes {
		peer, mine := b.peer(c)
		if !mine {
			ignored++
			continue
		}
		changed = b.edit(changed, peer, func(w *wishes) {
			w.put(claim{owner, c.VID, since})
		})
	}
	return changed, ignored, nil
}

// put gives a claim its place, and takes its owner's earlier one away.
func (w *wishes) put(c claim) {
	w.claims = slices.DeleteFunc(w.claims, owned(c.owner))
	at := slices.IndexFunc(w.claims, func(other claim) bool { return other.since > c.since })
	if at < 0 {
		at = len(w.claims)
	}
	w.claims = slices.Insert(w.claims, at, c)
}

func owned(by Owner) func(claim) bool { return func(c claim) bool { return c.owner == by } }

// Release takes all claims of an owner back, and returns the routes that have changed by it, sorted.
func (b *Book) Release(owner Owner) (changed []vlan.Route) {
	for peer, w := range b.peers {
		if slices.ContainsFunc(w.claims, owned(owner)) {
			changed = b.edit(changed, peer, func(w *wishes) { w.claims = slices.DeleteFunc(w.claims, owned(owner)) })
		}
	}
	slices.SortFunc(changed, byDst)
	return changed
}

// Force puts changes above all claims, with the reason, all or, with an error, none. It returns the routes that have
// changed by it. Pairs of other nodes are ignored.
func (b *Book) Force(reason string, changes []Change) (changed []vlan.Route, err error) {
	if err := b.check(changes); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if peer, mine := b.peer(c); mine {
			changed = b.edit(changed, peer, func(w *wishes) { w.forced = &forced{c.VID, reason} })
		}
	}
	return changed, nil
}

// Unforce takes back what was forced for the pairs with the given nodes, and returns the routes that have changed by it. Nodes for
// which nothing is forced are ignored.
func (b *Book) Unforce(peers ...transport.MAC) (changed []vlan.Route) {
	for _, peer := range peers {
		if w := b.peers[peer]; w != nil && w.forced != nil {
			changed = b.edit(changed, peer, func(w *wishes) { w.forced = nil })
		}
	}
	return changed
}

// edit changes the wishes for a peer, and appends its route if that has changed.
func (b *Book) edit(changed []vlan.Route, peer transport.MAC, f func(*wishes)) []vlan.Route {
	w := b.peers[peer]
	if w == nil {
		w = new(wishes)
		b.peers[peer] = w
	}
	before := b.vid(peer)
	f(w)
	after := b.vid(peer)
	b.forget(peer)
	if after == before || b.plan == nil {
		return changed
	}
	return append(changed, b.route(peer, after))
}

// peer returns the other node of a pair if one is this node.
func (b *Book) peer(c Change) (transport.MAC, bool) {
	switch b.self {
	case c.A:
		return c.B, true
	case c.B:
		return c.A, true
	}
	return transport.MAC{}, false
}

// vid is the one in force with a peer; 0 if the plan does not list the peer.
func (b *Book) vid(peer transport.MAC) transport.VID {
	n, listed := b.index[peer]
	if !listed {
		return 0
	}
	if w := b.peers[peer]; w != nil {
		if w.forced != nil {
			return w.forced.vid
		}
		if len(w.claims) > 0 {
			return w.claims[len(w.claims)-1].vid
		}
	}
	return b.plan.PairVID(b.number, n)
}

func (b *Book) route(dst transport.MAC, vid transport.VID) vlan.Route {
	return vlan.Route{Dst: dst, OptionalTag: transport.Tagged(transport.Tag{VID: vid, PCP: b.plan.PCP})}
}
