package barrier

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// This file handles messages of groups that do not exist here: they were not made yet, were
// closed, or belong to another epoch, as a process that began anew counts its groups from the
// beginning.

const (
	maxTombstones = 64  // of closed groups; those go first whose goodbyes were heard, then the oldest
	maxEarly      = 256 // kept messages; the oldest go first, and a nack brings them back
	maxConsents   = 64  // of groups that are not made yet; the oldest go first
)

// earlyMessage is a notify of a group that does not exist here. Most likely it is made soon.
type earlyMessage struct {
	from    mcd.NodeID
	message engine.Message
}

// consent is what this node has answered those who have asked, of a group that does not exist here,
// who is gone.
type consent struct {
	identity engine.Identity
	to       engine.Consent
}

// consents reports whether this node consents to what a node's report of a group says that does not
// exist here. It does to all where it has left the group, to the one that asks, or will never make
// that one. The caller holds mu.
func (s *Service) consents(from mcd.NodeID, m *engine.Message) bool {
	if m.Heard || s.isPast(m.Identity) {
		return true
	}
	i := slices.IndexFunc(s.consented, func(c consent) bool { return c.identity == m.Identity })
	if i < 0 {
		if len(m.Report.Gone) == 0 {
			return true
		}
		if len(s.consented) == maxConsents {
			s.consented = slices.Delete(s.consented, 0, 1)
		}
		i = len(s.consented)
		s.consented = append(s.consented, consent{identity: m.Identity})
	}
	return s.consented[i].to.To(int(from), m.Incarnation, m.Report.Gone)
}

// isPast reports whether a group's epoch is one that this process has made, or is beyond. The
// caller holds mu.
func (s *Service) isPast(id engine.Identity) bool {
	return id.Epoch <= s.made[id.Hash] || id.Epoch < s.lowestEpoch(s.base(id.Hash))
}

// takeConsent has a member set keep to what this node has consented to, to its members, before it
// existed. The caller holds mu.
func (s *Service) takeConsent(c *memberSet) {
	i := slices.IndexFunc(s.consented, func(given consent) bool { return given.identity == c.identity })
	if i < 0 {
		return
	}
	var given engine.Consent
	for _, a := range s.consented[i].to {
		if rank, member := slices.BinarySearch(c.nodes, mcd.NodeID(a.Asker)); member {
			a.Asker = rank
			given = append(given, a)
		}
	}
	s.consented = slices.Delete(s.consented, i, i+1)
	c.engine.Uphold(given)
}

// handleUnknown handles a message of a group that does not exist here. The caller holds mu.
func (s *Service) handleUnknown(now monotime.Time, from mcd.NodeID, m *engine.Message) {
	answer := engine.Message{
		Kind: engine.NoSuchGroup, Number: m.Number, Identity: m.Identity, Generation: m.Generation, Answers: m.Kind,
		Heard: m.Heard,
	}
	if m.Kind == engine.Report || m.Kind == engine.Bye || m.Kind == engine.NoSuchGroup {
		s.handlePredecessor(now, from, m)
	}
	switch m.Kind {
	case engine.Notify:
		s.dropEarly(from, m, false)
		if len(s.early) == maxEarly {
			s.early = slices.Delete(s.early, 0, 1)
		}
		s.early = append(s.early, earlyMessage{from, *m})
		return
	case engine.Nack, engine.Report:
		if s.farewell(now, from, m) {
			return
		}
		if m.Kind == engine.Report && !m.Report.Query {
			return
		}
		if m.Kind == engine.Report && !s.consents(from, m) {
			answer.Generation-- // of a report that was: this node is there, and consents to nothing
		}
		answer.Lowest = s.lowestEpoch(s.base(m.Identity.Hash))
	case engine.StatusRequest:
	case engine.Bye:
		s.dropEarly(from, m, true)
		answer.Kind = engine.ByeAck
	default:
		return
	}
	s.buf = answer.Append(s.buf[:0])
	s.post(m.NIC, mcd.To(mcd.Addr{Node: from, Port: s.cfg.Port}))
}

// dropEarly drops what was kept of a node for the group of a message: if the node leaves with that,
// of its life, and else of its former ones. A group that is made later knows of no life but the
// last one. The caller holds mu.
func (s *Service) dropEarly(from mcd.NodeID, m *engine.Message, leaves bool) {
	s.early = slices.DeleteFunc(s.early, func(e earlyMessage) bool {
		sameLife := e.message.Incarnation == m.Incarnation
		return e.from == from && e.message.Identity == m.Identity && sameLife == leaves
	})
}

// farewell has the closed member set answer that a message is for. A node that has begun anew since
// means a later group.
func (s *Service) farewell(now monotime.Time, from mcd.NodeID, m *engine.Message) (answered bool) {
	for _, c := range s.tombstones {
		if rank, member := slices.BinarySearch(c.nodes, from); c.identity == m.Identity && member {
			s.out, answered = c.engine.Farewell(now, rank, m, s.out[:0])
			c.sendAll(s.out)
			return answered
		}
	}
	return false
}

// bury takes a member set out, and keeps it for members that have missed its goodbye. The caller
// holds mu.
func (s *Service) bury(c *memberSet) {
	delete(s.sets, c.identity)
	s.last = nil
	if len(s.tombstones) == maxTombstones {
		least := max(0, slices.IndexFunc(s.tombstones, func(c *memberSet) bool { return c.engine.ByeAcked() }))
		s.tombstones = slices.Delete(s.tombstones, least, least+1)
	}
	s.tombstones = append(s.tombstones, c)
}

// takeEarly gives a member set the messages that came before it existed. The caller holds mu.
func (s *Service) takeEarly(c *memberSet) {
	s.early = slices.DeleteFunc(s.early, func(e earlyMessage) bool {
		if e.message.Identity != c.identity {
			return false
		}
		c.handle(clock.Now(), e.from, &e.message)
		return true
	})
}

// base returns the hash of the group that a member set's hash belongs to; 0 if none exists.
func (s *Service) base(hash uint64) uint64 {
	for _, c := range s.sets {
		if c.identity.Hash == hash {
			return c.group.base
		}
	}
	return 0
}

// lowestEpoch returns the lowest epoch of the groups with a hash; 0 if none exists.
func (s *Service) lowestEpoch(base uint64) (lowest uint32) {
	for _, g := range s.groups {
		if g.base == base && (lowest == 0 || g.epoch < lowest) {
			lowest = g.epoch
		}
	}
	return lowest
}

// isFresh reports whether the group may yet move to another epoch: all of its members have
// completed no barrier in this one. The caller holds Service.mu.
func (g *Group) isFresh() bool { return g.all.engine.Fresh() }

// rejoin moves the groups with a hash to later epochs, the lowest to the one that another member
// has told, which is later. Those stay whose members have all met in theirs. It moves none if that
// is the epoch of one of them that has completed a barrier. The caller holds mu.
func (s *Service) rejoin(now monotime.Time, base uint64, lowest uint32) {
	behind := lowest - s.lowestEpoch(base)
	var moved []*memberSet
	for _, g := range s.groups {
		if g.base != base || !g.isFresh() {
			continue
		}
		for _, c := range g.sets {
			if !c.engine.Fresh() {
				continue
			}
			moved = append(moved, c)
			taken := s.sets[engine.Identity{Hash: c.identity.Hash, Epoch: g.epoch + behind}]
			if taken != nil && !taken.engine.Fresh() {
				return
			}
		}
	}
	s.made[base] += behind
	for _, g := range s.groups {
		if g.base == base && g.isFresh() {
			g.epoch += behind
		}
	}
	for _, c := range moved {
		delete(s.sets, c.identity)
	}
	for _, c := range moved {
		c.identity.Epoch = c.group.epoch
		s.sets[c.identity] = c
		s.out = c.engine.Rejoin(now, c.identity.Epoch, s.out[:0])
		c.flush()
		s.takeConsent(c)
		s.takeEarly(c)
	}
}
