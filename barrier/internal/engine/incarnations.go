package engine

import (
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
)

// This file tells a member that has begun anew from what it was before, also where the two were
// never heard directly: most schedules have members hear of each other through third ones.
//
// A notify of a first generation, and a bye, which may stand for one, carry the incarnations that
// their sender knows, and their receiver takes them over. A member leaves a generation after all
// entries: so a member that leaves a first one knows the incarnations of all, and releases no later
// one. A message that names another incarnation than the receiver's was sent to an earlier one, and
// does not count.

// known returns what a message of a generation says of incarnations: nothing where they do not fit
// a notify.
func (e *Engine) known(generation uint32) []uint32 {
	if generation != 1 || e.cfg.Size > maxKnown || headLen+2+e.cfg.Size*wordLen > e.cfg.MaxMessage {
		return nil
	}
	return slices.Clone(e.incarnations)
}

// hear notes that a member is alive. It returns false if the member has begun anew since.
func (e *Engine) hear(from int, msg *Message) bool {
	e.peers[from].silence.Heard()
	return e.learn(from, msg.Incarnation)
}

// learnAll takes over what a message says of the others' incarnations; of this one's isStale has
// judged. It returns a member that has begun anew since it was heard of, or -1.
func (e *Engine) learnAll(msg *Message) int {
	if len(msg.Known) == e.cfg.Size {
		for rank, incarnation := range msg.Known {
			if rank != e.cfg.Rank && !e.learn(rank, incarnation) {
				return rank
			}
		}
	}
	return -1
}

// disagree handles a message that tells another incarnation of a member than the one that is known.
// A bye is of one that has left, and has completed nothing with this one.
func (e *Engine) disagree(now monotime.Time, rank, from int, msg *Message, out []Send) []Send {
	if msg.Kind != Bye {
		return e.restarted(now, rank, from, msg, out)
	}
	e.Accuse(now, rank, Restarted)
	bye := *msg
	bye.Done = nil
	return e.handleBye(now, from, &bye, out)
}

// learn notes a member's incarnation, unless it is 0: not known. It returns false if the member had
// another one.
func (e *Engine) learn(rank int, incarnation uint32) bool {
	if e.incarnations[rank] == 0 {
		e.incarnations[rank] = incarnation
		e.agree.Hear(rank, incarnation)
	}
	return incarnation == 0 || e.incarnations[rank] == incarnation
}

// isStale reports whether a message was sent to an earlier incarnation of this member.
func (e *Engine) isStale(msg *Message) bool {
	known := msg.Echo
	if len(msg.Known) == e.cfg.Size {
		known = msg.Known[e.cfg.Rank]
	}
	return known != 0 && known != e.cfg.Incarnation
}

// ignore drops a stale message. A bye is acknowledged, as by one without the group.
func (e *Engine) ignore(from int, msg *Message, out []Send) []Send {
	e.stats.Late++
	if msg.Kind != Bye {
		return out
	}
	ack := e.answer(ByeAck, from, msg)
	ack.Message.Incarnation = 0
	return append(out, ack)
}
