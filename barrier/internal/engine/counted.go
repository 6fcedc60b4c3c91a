package engine

import (
	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/internal/monotime"
)

// This file is for notifies that are counted elsewhere, by a unit in the path of the NIC: the
// engine handles them later, and its own release is not sent.

// Counts reports whether a message is a notify that the schedule awaits, from a member as it is
// known here: one that may be counted elsewhere.
func (e *Engine) Counts(from int, msg *Message) bool {
	return msg.Kind == Notify && msg.Identity == e.cfg.Identity && msg.Algorithm == e.algorithm &&
		msg.Incarnation == e.Incarnation(from) && !e.isStale(msg) && e.plan.find(from, msg.Label) >= 0
}

// HandleCounted handles a member's notify that was counted elsewhere.
func (e *Engine) HandleCounted(now monotime.Time, from int, number, label uint8, generation uint32, out []Send) []Send {
	msg := e.message(Notify, number, label, generation)
	msg.Incarnation = e.Incarnation(from)
	return e.Handle(now, from, &msg, out)
}

// Incarnation returns that of a member; 0 if it is not known.
func (e *Engine) Incarnation(rank int) uint32 { return e.incarnations[rank] }

// Intact reports whether no member has left, and none is asked whether it lives.
func (e *Engine) Intact() bool {
	return e.gone == nil && e.leavers == 0 && e.leaves == 0 && e.agree.State() == agreement.Quiet
}

// Awaited returns the label of the one notify that this member awaits from another one.
func (e *Engine) Awaited(from int) (label uint8, ok bool) {
	for _, a := range e.plan.awaits {
		if a.From == from {
			return a.Label, true
		}
	}
	return 0, false
}
