package claims

import (
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

func byDst(a, b vlan.Route) int { return a.Dst.Compare(b.Dst) }

// Routes returns the node's routes in force, sorted by destination: the default, by which nodes go that the plan does not
// list, is the last. Without a plan there are none.
func (b *Book) Routes() []vlan.Route {
	if b.plan == nil {
		return nil
	}
	routes := b.plan.Routes(b.number)
	for i, r := range routes {
		if b.peers[r.Dst] != nil {
			routes[i].Tag.VID = b.vid(r.Dst)
		}
	}
	slices.SortFunc(routes, byDst)
	return routes
}

// Wish is one that lies over the plan.
type Wish struct {
	Peer    transport.MAC
	VID     transport.VID
	Owner   Owner
	Forced  bool   // then there is no owner, but a reason
	Reason  string //
	Covered bool   // another wish is in force
}

// Wishes returns all wishes, sorted by peer and, for one peer, the one in force first.
func (b *Book) Wishes() []Wish {
	var all []Wish
	for peer, w := range b.peers {
		var mine []Wish
		for _, c := range slices.Backward(w.claims) {
			mine = append(mine, Wish{Peer: peer, VID: c.vid, Owner: c.owner})
		}
		if w.forced != nil {
			mine = slices.Insert(mine, 0, Wish{Peer: peer, VID: w.forced.vid, Forced: true, Reason: w.forced.reason})
		}
		for i := range mine[1:] {
			mine[i+1].Covered = true
		}
		all = append(all, mine...)
	}
	slices.SortStableFunc(all, func(x, y Wish) int { return x.Peer.Compare(y.Peer) })
	return all
}

// Claims returns an owner's claims, sorted by peer.
func (b *Book) Claims(owner Owner) []Claimed {
	var mine []Claimed
	for peer, w := range b.peers {
		for _, c := range w.claims {
			if c.owner == owner {
				mine = append(mine, Claimed{Change{b.self, peer, c.vid}, c.since})
			}
		}
	}
	slices.SortFunc(mine, func(x, y Claimed) int { return x.B.Compare(y.B) })
	return mine
}
