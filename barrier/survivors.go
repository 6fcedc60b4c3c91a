package barrier

import (
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// This file ends the waits of survivors that did not decide alike. A node that could not be heard,
// or stood still, while all agreed who is down may have decided without the others, and they that
// it is down itself. It then makes a group (Without) that they never make, and would wait there for
// ever.

// settled reports whether a member that does not have this group may still make it. Members of a
// group that survives another one do if they have decided alike there: who has not said so yet is
// asked, and who has decided otherwise is gone, here. The caller holds Service.mu.
func (c *memberSet) settled(now monotime.Time, from mcd.NodeID, rank int) bool {
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
	var known bool
	s.out, known = predecessor.engine.Inquire(other, s.out[:0])
	for i := range s.out {
		predecessor.send(&s.out[i])
	}
	return known
}
