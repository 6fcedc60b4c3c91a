package barrier

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// This file asks members by other paths before they count as down: nacks and reports take the
// networks in turn, by the route of each; probes take other VLANs. A node that answers those alone
// is alive, and a failover may be about to change its route: it is spared for two more peer
// timeouts.

// maxDetours is the most probes for one member at a time: the tags of a few dozen VLANs come in
// turn.
const maxDetours = 8

// probeDoubtful sends probes to the members that are silent for half of the peer timeout, by tags
// that are not those of their routes: not more often than nacks of one number are sent, also if
// several wait. The caller holds Service.mu.
func (c *memberSet) probeDoubtful(now monotime.Time) {
	s := c.service
	doubtful := c.engine.Doubtful(nil)
	if len(doubtful) == 0 || now.Sub(c.probed) < c.group.cfg.PeerTimeout/(2*agreement.Queries) {
		return
	}
	c.probed = now
	detours := c.detours()
	for _, rank := range doubtful {
		node := c.nodes[rank]
		routes := detours.routesTo(node)
		count := len(detours.all) - len(routes)
		for range min(count, maxDetours) {
			s.detour++
			path := detours.all[skip(s.detour%count, routes)]
			path.Node = node
			_, _ = s.ep.TryProbe(path, mcd.ProbeOptions{}) // the next one may have room
		}
	}
}

// detours are the paths by which a member set's nodes may be asked: by each network, the tags of
// Config.Detours, and those by which members are reached. They are found once for all nodes that
// are asked at one time: where a switch fails, those are thousands.
type detours struct {
	ep    *mcd.Endpoint
	all   []mcd.Path       // without the node
	index map[mcd.Path]int // in all
}

func (c *memberSet) detours() *detours {
	d := &detours{ep: c.service.ep, index: map[mcd.Path]int{}}
	for nic := range d.ep.NICs() {
		for _, tag := range c.service.cfg.Detours {
			d.add(nic, tag)
		}
		for _, node := range c.nodes {
			if p, err := d.ep.Path(node, nic); err == nil && node != d.ep.Node() {
				d.add(nic, p.OptionalTag)
			}
		}
	}
	return d
}

func (d *detours) add(nic int, tag transport.OptionalTag) {
	path := mcd.Path{NIC: nic, OptionalTag: tag}
	if _, known := d.index[path]; !known {
		d.index[path] = len(d.all)
		d.all = append(d.all, path)
	}
}

// routesTo returns which of the paths are the node's routes: ascending, one for each network. If
// the table has lost the node there are none, and TryProbe refuses.
func (d *detours) routesTo(node mcd.NodeID) (routes []int) {
	for nic := range d.ep.NICs() {
		if path, err := d.ep.Path(node, nic); err == nil {
			path.Node = 0
			if i, known := d.index[path]; known { // else it has changed just now
				routes = append(routes, i)
			}
		}
	}
	return routes
}

// skip returns the i-th of the indices that are not among some, which are ascending.
func skip(i int, some []int) int {
	for _, s := range some {
		if i >= s {
			i++
		}
	}
	return i
}

// watchProbe notes that a node has answered by another path than its route.
func (s *Service) watchProbe(p *mcd.Probe) {
	if !p.Reply {
		return
	}
	route, err := s.ep.Path(p.From, p.NIC)
	if err != nil || route.OptionalTag == p.SentTag {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sets {
		if rank, member := slices.BinarySearch(c.nodes, p.From); member {
			c.engine.Excuse(rank)
		}
	}
}
