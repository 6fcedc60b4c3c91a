package barrier

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// This file ends the waits of survivors that did not decide alike. A node that could not be heard,
// or stood still, while all agreed who is down may have decided without the others, and they that
// it is down itself. It then makes a group (Without) that they never make, and would wait there for
// ever.

// settled reports whether it is known if a member that does not have this group may still make it.
// Members of a group that survives another one do if they have decided alike there: who has not
// said so yet is asked, and who has decided otherwise is gone, here. So is who has left that other
// group and made none of its survivors, or has begun anew since: each time it is asked again. Where
// more are gone than a report names, each may know of other ones: members of this group that nobody
// asks else may be gone, too. The caller holds Service.mu.
func (c *memberSet) settled(now monotime.Time, from mcd.NodeID, rank, nic int) bool {
	if c.leftGroup(now, from, rank, nic) {
		return true
	}
	predecessor := c.group.predecessor
	if predecessor == nil {
		return true
	}
	other, _ := slices.BinarySearch(predecessor.nodes, from) // a survivor is a member
	s := c.service
	c.engine.Alive(rank)
	if who, why, is := predecessor.engine.Outside(other); is {
		who, _ = slices.BinarySearch(c.nodes, predecessor.nodes[who])
		c.engine.Accuse(now, who, why)
		s.out = s.out[:0]
		c.flush()
		return false
	}
	if c.departed(now, from, rank) {
		return true
	}
	if predecessor.engine.MayDiffer() { // and wait in another group, for members of this one
		c.engine.Doubt(now)
	}
	var known bool
	s.out, known = predecessor.engine.Inquire(other, s.out[:0])
	predecessor.sendAll(s.out)
	return known
}

// departed reports whether a member has left one of the groups before, of which these are the
// survivors, or has begun anew since: then it is gone here, too. In those before the last one,
// which it may never have made, it is asked here. The caller holds Service.mu.
func (c *memberSet) departed(now monotime.Time, from mcd.NodeID, rank int) bool {
	for p := c.group.predecessor; p != nil; p = p.group.predecessor {
		other, _ := slices.BinarySearch(p.nodes, from) // a survivor is a member
		if why, left := p.engine.Departed(other); left {
			c.engine.Accuse(now, rank, why)
			return true
		}
		if p == c.group.predecessor {
			continue
		}
		question, _ := p.engine.Inquire(other, nil)
		p.sendAll(question)
	}
	return false
}

// leftGroup reports whether a member of a mask that does not have it has left the group, also to go
// on in one of the survivors, or is gone from it, and so never makes it: then it is gone here, too.
// A goodbye is not for all members, so it is asked for one. The caller holds Service.mu.
func (c *memberSet) leftGroup(now monotime.Time, from mcd.NodeID, rank, nic int) bool {
	all := c.group.all
	if all == c {
		return false
	}
	other, _ := slices.BinarySearch(all.nodes, from) // who is in a mask is a member
	why, left := all.engine.Departed(other)
	if !left && all.engine.HasClosed(other) {
		why, left = engine.Left, true
	}
	if left {
		c.engine.Accuse(now, rank, why)
		return true
	}
	question := all.engine.Question(other, nic)
	all.send(&question)
	return false
}

// handlePredecessor has the group whose survivors a group here has, or theirs in turn, handle what
// a member says there, also once it is closed. The caller holds mu.
func (s *Service) handlePredecessor(now monotime.Time, from mcd.NodeID, m *engine.Message) {
	for _, g := range s.groups {
		c := g.predecessor
		for c != nil && c.identity != m.Identity {
			c = c.group.predecessor
		}
		if c == nil {
			continue
		}
		if rank, member := slices.BinarySearch(c.nodes, from); member {
			_ = c.engine.Handle(now, rank, m, nil) // it answers as a closed group does
		}
		return
	}
}
