package engine

import "github.com/rawlane/rawlane/internal/monotime"

// Handle handles a message from a member.
func (e *Engine) Handle(now monotime.Time, from int, msg *Message, out []Send) []Send {
	if from < 0 || from >= e.cfg.Size || from == e.cfg.Rank || msg.Identity != e.cfg.Identity {
		e.stats.Unexpected++
		return out
	}
	if e.isStale(msg) {
		return e.ignore(from, msg, out)
	}
	if !e.hear(from, msg) {
		return e.restarted(now, from, from, msg, out)
	}
	if rank := e.learnAll(msg); rank >= 0 {
		return e.disagree(now, rank, from, msg, out)
	}
	m := e.machine(msg.Number)
	if msg.Algorithm != e.algorithm && msg.Kind.scheduled() {
		return e.handleOtherAlgorithm(m, from, msg, out)
	}
	switch msg.Kind {
	case Notify:
		return e.handleNotify(m, now, from, msg, out)
	case Nack:
		return e.handleNack(m, from, msg, out)
	case NotYet:
		e.handleNotYet(m, now, from, msg)
	case Fail:
		e.handleFail(m, now, msg)
	case Bye:
		return e.handleBye(now, from, msg, out)
	case ByeAck:
		e.peers[from].byeAcked = true
	case StatusRequest:
		return e.answerStatus(m, from, msg, out)
	case StatusReply:
		e.handleStatus(m, from, msg)
	case NoSuchGroup:
		e.handleStatus(m, from, msg)
		e.handleNoSuchGroup(m, now, from, msg)
	case Report:
		return e.handleReport(now, from, msg, out)
	}
	return out
}

// handleNotify handles a message of the schedule.
func (e *Engine) handleNotify(m *machine, now monotime.Time, from int, msg *Message, out []Send) []Send {
	ahead := int32(msg.Generation - m.generation)
	if e.parityOnly {
		ahead &= 1
	}
	switch {
	case m.state == Failed:
		return e.answerFailure(from, msg, m.failure, out)
	case ahead > 1: // the others have left a generation that this node has not entered: it has begun anew
		return e.restarted(now, e.cfg.Rank, from, msg, out)
	case ahead < 0 || ahead == 0 && m.state != Waiting:
		e.stats.Late++
		return out
	}
	i := e.plan.find(from, msg.Label)
	if i < 0 {
		e.stats.Unexpected++
		return out
	}
	c := &m.parities[msg.Generation&1]
	if c.here[i] {
		e.stats.Duplicates++
		return out
	}
	c.here[i] = true
	step := e.plan.stepOf[i]
	c.left[step]--
	c.at[i] = now
	if ahead > 0 || step != m.step {
		return out
	}
	if c.left[step] == 0 {
		e.last[from]++
	}
	return e.progress(m, now, out)
}

// handleNack answers a member that lacks a message of this one.
func (e *Engine) handleNack(m *machine, from int, msg *Message, out []Send) []Send {
	step := e.plan.notified(from, msg.Label)
	if step < 0 {
		e.stats.Unexpected++
		return out
	}
	ahead := int32(msg.Generation - m.generation)
	switch {
	case ahead < -1: // the sender has begun anew, or the nack is very late and the answer does no harm
		return append(out, e.answerFail(from, msg, newFailure(Restarted, from)))
	case ahead == -1, ahead == 0 && (m.state == Idle || m.step > step):
		e.stats.Resent++
		again := e.answer(Notify, from, msg)
		again.Message.Known = e.known(msg.Generation)
		return append(out, again)
	case m.state == Failed:
		return e.answerFailure(from, msg, m.failure, out)
	case m.state == Idle && e.pendingFailure(m) != nil:
		return e.answerFailure(from, msg, e.pendingFailure(m), out)
	}
	answer := e.answer(NotYet, from, msg)
	answer.Message.Own, answer.Message.Entered = m.generation, m.hasEntered(msg.Generation)
	return append(out, answer)
}

// handleNotYet handles the answer that a message is not to be had yet. All members were in the
// generation before this one: a sender that was not has begun anew.
func (e *Engine) handleNotYet(m *machine, now monotime.Time, from int, msg *Message) {
	if m.state == Waiting && msg.Generation == m.generation && int32(m.generation-msg.Own) > 1 {
		e.Accuse(now, from, Restarted)
	}
}

// handleNoSuchGroup handles the answer that the group does not exist at a member: it was not made
// yet, or, if the member was heard in it before it was asked, or is agreed to be gone, the member
// has left it. What it has completed it does not know any more, or not with this incarnation.
// Once it is agreed who is gone, a member that was never heard here is not awaited either: it hears
// of that in its turn.
func (e *Engine) handleNoSuchGroup(m *machine, now monotime.Time, from int, msg *Message) {
	ofReport := msg.Answers == Report
	switch {
	case msg.Answers == StatusRequest && msg.Generation == 0: // see closed
		p := &e.peers[from]
		p.closed = p.closed || msg.Heard && e.incarnations[from] != 0
	case msg.Heard && e.incarnations[from] != 0, e.gone != nil && e.isGone(from):
		if ofReport || m.state == Waiting && msg.Generation == m.generation {
			e.noteLeft(from, nil)
			e.Accuse(now, from, Left)
			e.forsake(from)
		}
	case ofReport && e.agree.HandleNoGroup(now, from, msg.Generation):
		e.conclude()
	case !ofReport && e.gone != nil && e.incarnations[from] == 0 &&
		m.state == Waiting && msg.Generation == m.generation:
		e.forsake(from)
	}
}
