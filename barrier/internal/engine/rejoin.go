package engine

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/internal/monotime"
)

// Farewell appends the answer of a member that has left the group to a nack or report of another
// one: goodbye. Once it is agreed who is gone, it answers as before: the others go on, elsewhere.
// To a query it says goodbye as well or, if it goes on with them (Survive), that it is not in this
// group any more.
//
// ok is false if the message comes from a later life of the other one, and so means a later group:
// that was heard by another incarnation, or is gone and was never heard, or lacks a generation that
// this member has long completed. A member that has not begun anew is at most one generation
// behind.
func (e *Engine) Farewell(now monotime.Time, from int, msg *Message, out []Send) (answers []Send, ok bool) {
	known, m := e.incarnations[from], e.machine(msg.Number)
	ask := msg.Kind == Report
	switch {
	case known != msg.Incarnation && (known != 0 || e.isGone(from)):
		return out, false
	case !ask && int32(m.completed()-msg.Generation) > 0:
		return out, false
	case ask && e.gone != nil:
		out = e.handleReport(now, from, msg, out)
		switch {
		case msg.Report.Query && !e.survives:
			out = append(out, Send{from, msg.NIC, e.Goodbye(from)})
		case msg.Report.Query:
			out = append(out, e.closed(from, msg))
		}
		return out, true
	case ask && !msg.Report.Query: // an answer may be answered in turn, with one more such report
		return out, true
	case e.gone == nil:
		return append(out, Send{from, msg.NIC, e.Goodbye(from)}), true
	case e.isGone(from):
		return e.answerGone(from, msg, out), true
	}
	before := len(out)
	out = e.handleNack(m, from, msg, out)
	if len(out) > before && out[before].Message.Kind == NotYet { // and never will be: it has left while it waited
		out = e.answerFailure(from, msg, e.gone, out[:before])
	}
	return out, true
}

// closed makes the answer that this member has left the group, and goes on in one of the survivors.
// It is that to a status request of generation 0, which nobody sends: so it ends nothing here, and
// HasClosed tells.
func (e *Engine) closed(to int, msg *Message) Send {
	s := e.answer(NoSuchGroup, to, msg)
	s.Message.Incarnation, s.Message.Generation = 0, 0
	s.Message.Answers, s.Message.Heard = StatusRequest, msg.Heard
	return s
}

// HasClosed reports whether a member has left the group, though it may go on in one of the
// survivors.
func (e *Engine) HasClosed(rank int) bool { return e.peers[rank].closed }

// Survive notes that this member goes on in a group of the survivors.
func (e *Engine) Survive() { e.survives = true }

// Outside returns who of this member and another one is gone, to others, though what was agreed
// here names neither: they do not go on together, in a group of the survivors.
func (e *Engine) Outside(rank int) (who int, why Reason, is bool) { return e.agree.Outside(rank) }

// MayDiffer reports whether others may have agreed that other members are gone, or have said so:
// more are than a report names.
func (e *Engine) MayDiffer() bool { return e.agree.MayDiffer() }

// Departed returns why a member takes part in the group no more; ok is false as long as it may.
func (e *Engine) Departed(rank int) (why Reason, ok bool) {
	if e.gone != nil {
		if i, is := slices.BinarySearch(e.gone.Ranks, rank); is {
			return e.gone.Reasons[i], true
		}
	}
	p := &e.peers[rank]
	if p.restarted {
		return Restarted, true
	}
	return Left, p.left
}

// Question returns a report that asks a member whether it takes part in the group: one that has
// left it says goodbye.
func (e *Engine) Question(rank, nic int) Send {
	return e.wrap([]agreement.Send{e.agree.ReportTo(rank, nic, true)}, nil)[0]
}

// Inquire appends the question what a member has decided. If that is known, the member is asked
// whether it is there, without the decision: another life of it is not to know that.
func (e *Engine) Inquire(rank int, out []Send) (query []Send, known bool) {
	if e.gone == nil {
		return out, true
	}
	known = e.agree.KnowsDecision(rank)
	question := e.agree.Confirm(rank, nil)
	if known {
		question[0].Report = agreement.Report{Query: true}
	}
	return e.wrap(question, out), known
}

// Alive notes that a member lives.
func (e *Engine) Alive(rank int) {
	e.peers[rank].silence.Heard()
	e.agree.Alive(rank)
}

// Fresh reports whether this member has completed no barrier of the group, and knows of no failure:
// what it has done so far can be done again in another epoch.
func (e *Engine) Fresh() bool {
	for _, m := range e.machines {
		if m != nil && (m.generation > 1 || m.generation == 1 && m.state != Waiting || m.pendingFailure != nil) {
			return false
		}
	}
	return e.agree.State() == agreement.Quiet
}

// Rejoin moves a fresh engine to the epoch in which the other members are: this process began
// anew, and counts the groups that it made from the beginning. All that was heard may come from
// members of the old epoch and is forgotten; barriers that were entered are entered again.
func (e *Engine) Rejoin(now monotime.Time, epoch uint32, out []Send) []Send {
	e.cfg.Identity.Epoch = epoch
	e.forget()
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
