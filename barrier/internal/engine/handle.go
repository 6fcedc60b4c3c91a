package engine

import (
	"slices"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
)

// Handle takes a message from a member. elsewhere is a barrier in which this node waits for that member, if there is one
// besides the message's own: it is told to who asks in vain. Of a Later, inElsewhere says that this node is in the
// barrier that the message tells of.
func (e *Engine) Handle(now monotime.Time, from int, msg *Message, elsewhere Elsewhere, out []Send) []Send {
	if from < 0 || from >= e.cfg.Size || from == e.cfg.Rank || msg.Identity != e.cfg.Identity {
		e.counters.Unawaited++
		return out
	}
	if !e.hear(from, msg) {
		return e.strange(from, from, msg, out)
	}
	m := e.machine(msg.Number)
	if msg.Algorithm != e.algorithm && msg.Kind.runs() {
		return e.disagree(m, from, msg, out)
	}
	switch msg.Kind {
	case Tell:
		return e.told(m, now, from, msg, out)
	case Ask:
		return e.asked(m, from, msg, elsewhere, out)
	case Later:
		return e.later(m, now, from, msg, elsewhere, out)
	case Fail:
		e.othersFailed(m, from, msg)
	case Bye:
		return e.bye(now, from, msg, out)
	case Bid:
		e.bid(from)
	case Roll:
		answer := e.message(Present, m, 0)
		answer.Entered = entered(m, msg.Generation)
		answer.Generation = msg.Generation
		return append(out, Send{from, msg.NIC, answer})
	case Present:
		e.answered(m, from, msg)
	case Absent:
		e.answered(m, from, msg)
		if e.vanished(m, from, msg) {
			return e.failAll(m, newFailure(Left, from), out)
		}
		return e.later(m, now, from, msg, elsewhere, out)
	}
	return out
}

// hear notes that a member is alive. It returns false if that has lost its memory since.
func (e *Engine) hear(from int, msg *Message) bool {
	p := &e.peers[from]
	p.asks = 0
	if msg.Incarnation == 0 { // from one that is in no such group, or speaks of another one
		return true
	}
	p.absences = 0
	if p.incarnation == 0 {
		p.incarnation = msg.Incarnation
	}
	return p.incarnation == msg.Incarnation
}

// vanished reports whether a member that was in the group has left it, so long ago that it no longer knows what it has
// completed. One such answer may have been long on its way, from before the group was made there.
func (e *Engine) vanished(m *machine, from int, msg *Message) bool {
	p := &e.peers[from]
	if p.incarnation == 0 || m.state != Waiting || msg.Generation != m.generation {
		return false
	}
	p.absences++
	return p.absences == maxAbsences
}

// strange takes a message of a member's other life: the group is broken, for both.
func (e *Engine) strange(who, from int, msg *Message, out []Send) []Send {
	f := newFailure(Restarted, who)
	e.lose(f)
	if msg.Kind == Fail {
		return out
	}
	return append(out, e.answerFail(from, msg, f))
}

// answerFail tells the sender of a message that its barrier has failed.
func (e *Engine) answerFail(to int, msg *Message, f *Failure) Send {
	answer := e.message(Fail, e.machine(msg.Number), 0)
	answer.Generation, answer.Failure = msg.Generation, f
	return Send{to, msg.NIC, answer}
}

// disagree takes a message of another algorithm: neither can succeed.
func (e *Engine) disagree(m *machine, from int, msg *Message, out []Send) []Send {
	switch m.state {
	case Waiting:
		out = e.failAll(m, newFailure(Algorithms, from, e.cfg.Rank), out)
	case Idle:
		m.doom = newFailure(Algorithms, from, e.cfg.Rank)
	}
	return append(out, e.answerFail(from, msg, newFailure(Algorithms, from, e.cfg.Rank)))
}

// told takes a message of the schedule.
func (e *Engine) told(m *machine, now monotime.Time, from int, msg *Message, out []Send) []Send {
	ahead := int32(msg.Generation - m.generation)
	if e.onlyColour {
		ahead = int32((msg.Generation - m.generation) & 1)
	}
	switch {
	case m.state == Failed:
		return append(out, Send{from, msg.NIC, e.failed(m)})
	case ahead > 1: // others have left a generation that this node, as far as it knows, never entered
		return e.strange(e.cfg.Rank, from, msg, out)
	case ahead < 0 || ahead == 0 && m.state != Waiting:
		e.counters.Late++
		return out
	}
	i := e.plan.find(from, msg.Label)
	if i < 0 {
		e.counters.Unawaited++
		return out
	}
	c := &m.colours[(m.generation+uint32(ahead))&1]
	if c.here[i] {
		e.counters.Double++
		return out
	}
	c.here[i] = true
	step := e.plan.stepOf[i]
	c.left[step]--
	c.at[i] = now
	if ahead == 0 {
		m.comes(from)
	}
	if ahead == 0 && step == m.step {
		if c.left[step] == 0 {
			m.last[i]++
		}
		return e.progress(m, now, out)
	}
	return out
}

// asked answers one who lacks a message of ours.
func (e *Engine) asked(m *machine, from int, msg *Message, elsewhere Elsewhere, out []Send) []Send {
	step := e.plan.told(from, msg.Label)
	if step < 0 {
		e.counters.Unawaited++
		return out
	}
	ahead := int32(msg.Generation - m.generation)
	switch {
	case ahead < -1: // whoever asks this is in an earlier life, or the question is very late and harms nobody
		return append(out, e.answerFail(from, msg, newFailure(Restarted, from)))
	case ahead == -1, ahead == 0 && (m.state == Idle || m.step > step):
		e.counters.ToldAgain++
		again := e.message(Tell, m, msg.Label)
		again.Generation = msg.Generation
		return append(out, Send{from, msg.NIC, again})
	case m.state == Failed:
		return append(out, e.answerFail(from, msg, m.failure))
	case m.state == Idle && e.hopeless(m) != nil:
		return append(out, e.answerFail(from, msg, e.hopeless(m)))
	}
	answer := e.message(Later, m, msg.Label)
	answer.Generation, answer.Own = msg.Generation, m.generation
	if answer.Entered = entered(m, msg.Generation); !answer.Entered {
		answer.Elsewhere = elsewhere
	}
	return append(out, Send{from, msg.NIC, answer})
}

// entered reports whether this node has entered a generation of m.
func entered(m *machine, generation uint32) bool { return int32(generation-m.generation) <= 0 }

// later hears that a message is not to be had yet. Two that wait for each other in different barriers would do so for
// ever: after the limit, that is an error. elsewhere is not zero if this node is in the barrier that the other one
// waits in.
func (e *Engine) later(m *machine, now monotime.Time, from int, msg *Message, elsewhere Elsewhere, out []Send) []Send {
	if m.state != Waiting || msg.Generation != m.generation {
		return out
	}
	if msg.Kind == Later && int32(m.generation-msg.Own) > 1 { // all were in the generation before: this one is in an earlier life
		return e.failAll(m, newFailure(Restarted, from), out)
	}
	where := msg.Elsewhere
	switch {
	case msg.Entered || where.Generation == 0 || elsewhere == where:
		m.comes(from)
	case m.mutual == (monotime.Time{}) || m.with == from && m.where != where: // in another one than before: it goes on
		m.mutual, m.with, m.where = now, from, where
	case m.with == from && now.Sub(m.mutual) >= e.cfg.Limit:
		return e.deadlocked(m, from, msg, out)
	}
	return out
}

// comes notes that a member is not waiting for us elsewhere.
func (m *machine) comes(rank int) {
	if m.with == rank {
		m.mutual = monotime.Time{}
	}
}

// deadlocked ends both barriers of two members that wait for each other. Where the other one is of another group, neither
// rank nor incarnation mean anything there: who gets the message knows whom it is from. It may be lost, so the
// barrier is to be doomed here too, by the driver if it is another group's.
func (e *Engine) deadlocked(m *machine, from int, msg *Message, out []Send) []Send {
	f := newFailure(Elsewheres, from)
	f.Elsewhere = msg.Elsewhere
	out = e.failAll(m, f, out)
	theirs := e.message(Fail, m, 0)
	theirs.Number, theirs.Identity, theirs.Generation = msg.Elsewhere.Number, msg.Elsewhere.Identity, msg.Elsewhere.Generation
	theirs.Failure = newFailure(Elsewheres, e.cfg.Rank)
	if theirs.Identity != e.cfg.Identity {
		theirs.Incarnation = 0
	} else {
		e.Doom(theirs.Number, theirs.Generation)
	}
	return append(out, Send{from, msg.NIC, theirs})
}

// Doom has a generation fail that this node has not entered yet, and others have: one of them waits there for this node,
// which waited for that one elsewhere, and has given up. Who asks is told.
func (e *Engine) Doom(number uint8, generation uint32) {
	if m := e.machine(number); generation == m.generation+1 {
		m.doom = newFailure(Elsewheres, e.cfg.Rank)
	}
}

// othersFailed takes the news that a barrier has failed elsewhere.
func (e *Engine) othersFailed(m *machine, from int, msg *Message) {
	f := msg.Failure
	if msg.Incarnation == 0 { // said in another group: ranks are others there
		f = newFailure(f.Reason, from)
	}
	for _, r := range f.Ranks {
		if r >= e.cfg.Size {
			e.counters.Unawaited++
			return
		}
	}
	switch ahead := int32(msg.Generation - m.generation); {
	case ahead == 0 && m.state == Waiting:
		e.fail(m, f)
	case ahead == 1:
		m.doom = f
	case !f.gone():
		e.counters.Late++
	}
	if f.gone() && !slices.Contains(f.Ranks, e.cfg.Rank) {
		e.note(f)
	}
}

// Leave says goodbye to those who may wait for messages of this member. Call it again, now and then, until it returns
// no more.
func (e *Engine) Leave(out []Send) []Send {
	bye := e.Goodbye()
	e.leaves++
	for rank, depends := range e.plan.dependants(e.cfg.Size) {
		if depends && rank != e.cfg.Rank && !e.peers[rank].bid && !e.isGone(rank) {
			out = append(out, Send{rank, e.leaves % e.cfg.NICs, bye})
		}
	}
	return out
}

// Goodbye returns the message that says which generations this member has completed, and that it takes part in no more.
func (e *Engine) Goodbye() Message {
	bye := Message{Kind: Bye, Identity: e.cfg.Identity, Algorithm: e.algorithm, Incarnation: e.cfg.Incarnation}
	for _, m := range e.machines {
		if m == nil || m.entered.IsZero() { // never entered
			continue
		}
		d := Done{m.number, m.generation}
		if m.state != Idle {
			d.Generation--
		}
		bye.Done = append(bye.Done, d)
	}
	return bye
}

func (e *Engine) isGone(rank int) bool { return e.gone != nil && slices.Contains(e.gone.Ranks, rank) }

// bye takes a member's goodbye. What it has completed it has told; in what it has not it will not take part.
func (e *Engine) bye(now monotime.Time, from int, msg *Message, out []Send) []Send {
	e.bid(from)
	out = append(out, Send{from, msg.NIC, Message{Kind: Bid, Identity: e.cfg.Identity, Algorithm: e.algorithm, Incarnation: e.cfg.Incarnation}})
	if e.peers[from].left {
		return out
	}
	e.peers[from].left = true
	waiting := slices.Clone(e.waiting)
	for _, m := range waiting {
		if msg.completed(m.number, m.generation) {
			out = e.tellForAll(m, now, from, out)
		}
	}
	for _, m := range waiting {
		if m.state == Waiting && !msg.completed(m.number, m.generation) {
			out = e.failAll(m, newFailure(Left, from), out)
		}
	}
	e.note(newFailure(Left, from))
	return out
}

// completed reports whether a goodbye says that a generation was completed.
func (m *Message) completed(number uint8, generation uint32) bool {
	return slices.ContainsFunc(m.Done, func(d Done) bool { return d.Number == number && int32(d.Generation-generation) >= 0 })
}

// tellForAll takes all messages of a member in m's generation as told.
func (e *Engine) tellForAll(m *machine, now monotime.Time, from int, out []Send) []Send {
	for _, a := range e.plan.awaits {
		if a.From == from && m.state == Waiting {
			msg := Message{Kind: Tell, Label: a.Label, Generation: m.generation}
			out = e.told(m, now, from, &msg, out)
		}
	}
	return out
}

func (e *Engine) bid(from int) { e.peers[from].bid = true }

// Presence is what a roll call finds of a member.
type Presence uint8

// What it may find.
const (
	NoAnswer   Presence = iota // none yet
	Entered                    // has entered the generation
	NotEntered                 // is there, and has not
	NoGroup                    // is there, and knows no such group
)

// String names p.
func (p Presence) String() string {
	return [...]string{"no answer", "entered", "not entered", "has no such group"}[p%4]
}

// CallRoll asks all members whether they have entered the generation of a number that this one entered last; if again is
// set, those who have not answered yet. Roll returns the answers so far.
func (e *Engine) CallRoll(number uint8, again bool, out []Send) []Send {
	question := e.message(Roll, e.machine(number), 0)
	if !again {
		e.roll, e.rollOf = make([]Presence, e.cfg.Size), number
		e.roll[e.cfg.Rank] = Entered
		return append(out, Send{schedule.All, 0, question})
	}
	for rank, p := range e.roll {
		if p == NoAnswer {
			out = append(out, Send{rank, 0, question})
		}
	}
	return out
}

// Roll returns what the last roll call has found, by rank; nil if there was none.
func (e *Engine) Roll() []Presence { return e.roll }

func (e *Engine) answered(m *machine, from int, msg *Message) {
	if e.roll == nil || msg.Kind == Present && (msg.Number != e.rollOf || msg.Generation != m.generation) {
		return
	}
	switch {
	case msg.Kind == Absent:
		e.roll[from] = NoGroup
	case msg.Entered:
		e.roll[from] = Entered
	default:
		e.roll[from] = NotEntered
	}
}

// Missing appends the ranks whose messages a number waits for in its present step.
func (e *Engine) Missing(number uint8, ranks []int) []int {
	m := e.machines[number]
	if m == nil || m.state != Waiting {
		return ranks
	}
	s := &e.plan.steps[m.step]
	for i := s.await; i < s.awaitEnd; i++ {
		if !m.now().here[i] {
			ranks = append(ranks, e.plan.awaits[i].From)
		}
	}
	return ranks
}

// Silence returns for how long a member has not answered; 0 if it was not asked since it was heard.
func (e *Engine) Silence(now monotime.Time, rank int) time.Duration {
	if p := &e.peers[rank]; p.asks > 0 {
		return p.silence + now.Sub(p.last)
	}
	return 0
}

// Heard reports whether all to whom Leave said goodbye have answered.
func (e *Engine) Heard() bool { return len(e.Leave(nil)) == 0 }

// InOrBefore reports whether this node has entered a generation of a number, or is still in the one before: that ends, one
// way or the other, as who waits in the next one has seen all enter it.
func (e *Engine) InOrBefore(number uint8, generation uint32) bool {
	m := e.machines[number]
	return m != nil && (entered(m, generation) || m.state == Waiting && entered(m, generation-1))
}

// WaitingIn returns a number that has been entered and not left, of those for which is returns true.
func (e *Engine) WaitingIn(is func(number uint8) bool) (number uint8, generation uint32, ok bool) {
	for _, m := range e.waiting {
		if is(m.number) {
			return m.number, m.generation, true
		}
	}
	return 0, 0, false
}
