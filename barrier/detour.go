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
	for _, rank := range doubtful {
		all := c.detours(c.nodes[rank])
		for range min(len(all), maxDetours) {
			s.detour++
			_, _ = s.ep.TryProbe(all[s.detour%len(all)], mcd.ProbeOptions{}) // the next one may have room
		}
	}
}

// detours returns the paths to a node other than its routes: by each network, the tags by which
// other members are reached, and those of Config.Detours.
func (c *memberSet) detours(node mcd.NodeID) (all []mcd.Path) {
	ep := c.service.ep
	for nic := range ep.NICs() {
		tags := slices.Clone(c.service.cfg.Detours)
		for _, other := range c.nodes {
			if p, err := ep.Path(other, nic); err == nil && other != ep.Node() {
				tags = append(tags, p.OptionalTag)
			}
		}
		route, _ := ep.Path(node, nic) // if the table has lost the node, TryProbe refuses
		seen := []transport.OptionalTag{route.OptionalTag}
		for _, tag := range tags {
			if !slices.Contains(seen, tag) {
				seen = append(seen, tag)
				all = append(all, mcd.Path{Node: node, NIC: nic, OptionalTag: tag})
			}
		}
	}
	return all
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
