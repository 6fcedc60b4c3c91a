package engine

import (
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Leave says bye to the members that may wait for messages of this one and have not answered yet.
// The caller repeats it until it appends nothing.
func (e *Engine) Leave(out []Send) []Send {
	bye := e.Goodbye()
	e.leaves++
	for _, rank := range e.unacked() {
		out = append(out, Send{rank, e.leaves % e.cfg.NICs, bye})
	}
	return out
}

// ByeAcked reports whether all members that Leave said bye to have answered.
func (e *Engine) ByeAcked() bool { return len(e.unacked()) == 0 }

// unacked returns the members that may wait for messages of this one and have not answered its bye.
func (e *Engine) unacked() (ranks []int) {
	for rank, depends := range e.plan.dependants(e.cfg.Size) {
		if depends && rank != e.cfg.Rank && !e.peers[rank].byeAcked && !e.isGone(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Goodbye returns the message that says which generations this member has completed, and that it
// takes part in no more.
func (e *Engine) Goodbye() Message {
	bye := e.message(Bye, 0, 0, 0)
	for _, m := range e.machines {
		if m == nil || m.entered.IsZero() { // never entered
			continue
		}
		bye.Done = append(bye.Done, Done{m.number, m.completed()})
	}
	return bye
}

// handleBye handles a member's bye: it has sent all messages of what it has completed, and takes no
// part in anything else.
func (e *Engine) handleBye(now monotime.Time, from int, msg *Message, out []Send) []Send {
	p := &e.peers[from]
	p.byeAcked = true
	out = append(out, e.answer(ByeAck, from, msg))
	if p.left {
		return out
	}
	p.left = true
	waiting := slices.Clone(e.waiting)
	for _, m := range waiting {
		if msg.completed(m.number, m.generation) {
			out = e.notifyAllOf(m, now, from, out)
		}
	}
	for _, m := range waiting {
		if m.state == Waiting && !msg.completed(m.number, m.generation) {
			out = e.failAll(m, newFailure(Left, from), out)
		}
	}
	e.noteGone(newFailure(Left, from))
	return out
}

// completed reports whether a bye says that a generation was completed.
func (m *Message) completed(number uint8, generation uint32) bool {
	return slices.ContainsFunc(m.Done, func(d Done) bool {
		return d.Number == number && int32(d.Generation-generation) >= 0
	})
}

// notifyAllOf takes all messages of a member in m's generation as received.
func (e *Engine) notifyAllOf(m *machine, now monotime.Time, from int, out []Send) []Send {
	for _, a := range e.plan.awaits {
		if a.From == from && m.state == Waiting {
			msg := Message{Kind: Notify, Label: a.Label, Generation: m.generation}
			out = e.handleNotify(m, now, from, &msg, out)
		}
	}
	return out
}
