package mcd

import (
	"fmt"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// peer is another node as the send path wants it: a neighbour per NIC.
type peer struct {
	id         NodeID
	neighbours []neighbour
}

// neighbour is a peer's attachment to one network: its address, and the route there. The route is
// read for each frame: a route that changes costs the next frame to its destination, and no other.
type neighbour struct {
	mac   transport.MAC
	met   atomic.Bool       // with keys: contact was begun
	entry *vlan.Destination // in the endpoint's vlan.Table; nil: the program has a router of its own
	last  atomic.Uint32     // the last valid tag of such a router, packed
	lane  sendLane          // of descriptors that wait; guarded by the link's sendQueue.mu
}

func newPeer(id NodeID, macs []transport.MAC) *peer {
	p := &peer{id: id, neighbours: make([]neighbour, len(macs))}
	for nic, mac := range macs {
		p.neighbours[nic].mac = mac
	}
	return p
}

func (p *peer) hasAddresses(macs []transport.MAC) bool {
	for nic := range p.neighbours {
		if p.neighbours[nic].mac != macs[nic] {
			return false
		}
	}
	return true
}

// router is the endpoint's vlan.Router. A vlan.Table gives entries to keep; another router is asked
// for each frame.
type router struct {
	vlan.Router
	table *vlan.Table       // the Router, if it is one
	many  *vlan.Destination // in table, for groups and for all
}

func newRouter(r vlan.Router) router {
	if t, ok := r.(*vlan.Table); ok {
		return router{t, t, t.Destinations(transport.Broadcast)[0]}
	}
	return router{Router: r}
}

// resolve makes peers ready to send to, or reports a tag that no frame can carry.
func (r *router) resolve(peers []*peer) error {
	if r.table != nil {
		r.bind(peers)
		return nil
	}
	for _, p := range peers {
		for nic := range p.neighbours {
			n := &p.neighbours[nic]
			tag := r.Route(n.mac)
			if err := tag.Validate(); err != nil {
				return fmt.Errorf("node %d: route to %v: %w", p.id, n.mac, err)
			}
			n.last.Store(packTag(tag))
		}
	}
	return nil
}

// bind gives the neighbours their entries in the table.
func (r *router) bind(peers []*peer) {
	var macs []transport.MAC
	for _, p := range peers {
		for nic := range p.neighbours {
			macs = append(macs, p.neighbours[nic].mac)
		}
	}
	entries := r.table.Destinations(macs...)
	for _, p := range peers {
		for nic := range p.neighbours {
			p.neighbours[nic].entry, entries = entries[0], entries[1:]
		}
	}
}

// toNeighbour returns the tag of the next frame to a neighbour, and where to count it, or nil. A
// tag that no frame can carry leaves the one before it in force.
func (r *router) toNeighbour(n *neighbour) (transport.OptionalTag, *vlan.Count) {
	if n.entry != nil {
		return n.entry.Route()
	}
	tag := r.Route(n.mac)
	if tag.Validate() != nil {
		return unpackTag(n.last.Load()), nil
	}
	if word := packTag(tag); n.last.Load() != word {
		n.last.Store(word)
	}
	return tag, nil
}

// followsDefault reports whether frames to a neighbour follow the default route: it has none of its
// own in the table. Of another router only the tag is known: it is the default's.
func (r *router) followsDefault(n *neighbour) bool {
	if n.entry != nil {
		return n.entry.FollowsDefault()
	}
	return r.Route(n.mac) == r.Route(transport.Broadcast)
}

// toMany returns the same for a multicast or broadcast address.
func (r *router) toMany(dst transport.MAC) (transport.OptionalTag, *vlan.Count) {
	if r.many != nil {
		return r.many.Route()
	}
	return r.Route(dst), nil
}

const tagged = 1 << 16 // above the tag control information

func packTag(t transport.OptionalTag) uint32 {
	if !t.Tagged {
		return 0
	}
	return tagged | uint32(t.Tag.TCI())
}

func unpackTag(word uint32) transport.OptionalTag {
	return transport.OptionalTagFromTCI(word&tagged != 0, uint16(word))
}
