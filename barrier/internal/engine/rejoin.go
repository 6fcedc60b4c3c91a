package engine

import (
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
)

// BegunAnew reports whether a message comes from a later life of a member: it was heard by
// another incarnation, or counts as down, or lacks a generation that this member has long
// completed. A member that has not begun anew is at most one generation behind.
func (e *Engine) BegunAnew(rank int, msg *Message) bool {
	p, m := &e.peers[rank], e.machines[msg.Number]
	return p.incarnation != 0 && p.incarnation != msg.Incarnation || e.isGone(rank) ||
		m != nil && int32(m.completed()-msg.Generation) > 0
}

// Fresh reports whether this member has completed no barrier of the group, and knows of no failure:
// what it has done so far can be done again in another epoch.
func (e *Engine) Fresh() bool {
	for _, m := range e.machines {
		if m != nil && (m.generation > 1 || m.generation == 1 && m.state != Waiting || m.pendingFailure != nil) {
			return false
		}
	}
	return e.gone == nil
}

// Rejoin moves a fresh engine to the epoch in which the other members are: this process began
// anew, and counts the groups that it made from the beginning. All that was heard may come from
// members of the old epoch and is forgotten; barriers that were entered are entered again.
func (e *Engine) Rejoin(now monotime.Time, epoch uint32, out []Send) []Send {
	e.cfg.Identity.Epoch = epoch
	clear(e.peers)
	for _, m := range e.machines {
		if m != nil {
			m.parities[0].clear(e.plan)
			m.parities[1].clear(e.plan)
		}
	}
	for _, m := range slices.Clone(e.waiting) {
		m.step, m.nacked = 0, false
		e.beginStep(m, now)
		out = e.progress(m, now, out)
	}
	return out
}
