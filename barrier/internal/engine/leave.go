package engine

import (
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Leave says bye to the members that may wait for messages of this one and have not answered yet.
// The caller repeats it until it appends nothing. If members are gone, it reports them to the
// others, who may not know yet.
func (e *Engine) Leave(out []Send) []Send {
	if e.gone != nil {
		return e.wrap(e.agree.Announce(nil), out)
	}
	e.leaves++
	for _, rank := range e.unacked() {
		out = append(out, Send{rank, e.leaves % e.cfg.NICs, e.Goodbye(rank)})
	}
	return out
}

// ByeAcked reports whether all members that Leave said bye to have answered.
func (e *Engine) ByeAcked() bool { return len(e.unacked()) == 0 }

// unacked returns the members that may wait for messages of this one and have not answered its bye,
// or do not know who is gone.
func (e *Engine) unacked() (ranks []int) {
	if e.gone != nil {
		return e.agree.Untold()
	}
	for rank, depends := range e.plan.dependants(e.cfg.Size) {
		if depends && rank != e.cfg.Rank && !e.peers[rank].byeAcked && !e.isGone(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Goodbye returns the message that tells a member which generations this one has completed with it,
// and that it takes part in no more. Of more numbers than a message has room for it tells those
// that were entered last: it ends all waits for this member, and so cannot be several.
func (e *Engine) Goodbye(to int) Message {
	bye := e.message(Bye, 0, 0, 0)
	bye.Echo = e.incarnations[to]
	var entered []*machine
	for _, m := range e.machines {
		if m != nil && !m.entered.IsZero() {
			entered = append(entered, m)
		}
	}
	slices.SortStableFunc(entered, func(m, n *machine) int { return n.entered.Compare(m.entered) })
	room := max(0, (e.cfg.MaxMessage-headLen-byeLen-2)/doneLen)
	for _, m := range entered[:min(len(entered), room)] {
		bye.Done = append(bye.Done, Done{m.number, m.completed()})
	}
	if bye.Known = e.known(1); !bye.fits(e.cfg.MaxMessage) {
		bye.Known = nil
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
	e.noteLeft(from, msg.Done)
	waiting := slices.Clone(e.waiting)
	for _, m := range waiting {
		if completed(msg.Done, m.number, m.generation) {
			out = e.notifyAllOf(m, now, from, out)
		}
	}
	e.accuseLeavers(now) // if others are gone, too
	e.conclude()
	for _, m := range e.waiting {
		if !completed(msg.Done, m.number, m.generation) {
			e.Accuse(now, from, Left)
			break
		}
	}
	e.forsake(from) // if it comes after the agreement
	return out
}

// missLeavers gives up a barrier that was entered after members have left: they do not enter, and
// what one of them has completed of that number is not this barrier.
func (e *Engine) missLeavers(m *machine, now monotime.Time) {
	var one int
	for rank := range e.peers {
		if p := &e.peers[rank]; p.left {
			p.done = slices.DeleteFunc(slices.Clone(p.done), func(d Done) bool { return d.Number == m.number })
			one = rank
		}
	}
	e.Accuse(now, one, Left) // and the others
}

// noteLeft notes that a member has left, and what it has completed.
func (e *Engine) noteLeft(rank int, done []Done) {
	if p := &e.peers[rank]; !p.left {
		p.left, p.done = true, done
		e.leavers++
	}
}

// completed reports whether a bye says that a generation was completed.
func completed(done []Done, number uint8, generation uint32) bool {
	return slices.ContainsFunc(done, func(d Done) bool {
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
