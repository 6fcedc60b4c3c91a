package engine

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
)

// Reason is why a barrier failed.
type Reason = agreement.Reason

// The reasons. Members that are gone are agreed on, and their group has no further barriers; of
// another algorithm, only the barriers fail in which it is seen.
const (
	Silent         = agreement.Silent
	Unreachable    = agreement.Unreachable
	Left           = agreement.Left
	Restarted      = agreement.Restarted
	OtherAlgorithm = agreement.Restarted + 1 // members run another algorithm
	reasons        = OtherAlgorithm + 1
)

var reasonNames = [reasons]string{"", "silent", "unreachable", "left", "restarted", "another algorithm"}

// ReasonName names r, and one that does not exist by its number.
func ReasonName(r Reason) string {
	if r >= reasons {
		return fmt.Sprintf("reason %d", r)
	}
	return reasonNames[r]
}

// Failure is why a barrier failed, and through which members.
type Failure struct {
	Ranks   []int    // sorted; one at least
	Reasons []Reason // by index in Ranks
}

// newFailure is of members with one reason. It sorts the ranks, and keeps them.
func newFailure(reason Reason, ranks ...int) *Failure {
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	return &Failure{ranks, slices.Repeat([]Reason{reason}, len(ranks))}
}

// failureOf makes the failure of members that are gone.
func failureOf(gone []agreement.Gone) *Failure {
	f := new(Failure)
	for _, g := range gone {
		f.Ranks, f.Reasons = append(f.Ranks, g.Rank), append(f.Reasons, g.Reason)
	}
	return f
}

// Failure returns why a number's barrier failed, or nil.
func (e *Engine) Failure(number uint8) *Failure {
	if m := e.machines[number]; m != nil {
		return m.failure
	}
	return nil
}

// Agreed returns the failure that all members outside of it agree on, or that has this member in
// it; nil if there is none. No barrier of the group succeeds any more.
func (e *Engine) Agreed() *Failure { return e.gone }

// pendingFailure returns why the next generation fails as soon as it is entered, or nil.
func (e *Engine) pendingFailure(m *machine) *Failure {
	if e.gone != nil {
		return e.gone
	}
	return m.pendingFailure
}

// fail ends a barrier.
func (e *Engine) fail(m *machine, f *Failure) {
	m.state, m.failure = Failed, f
	e.end(m)
}

// Accuse says that a member is gone, or that this one is, to the others. Those that have left are,
// too: nobody has to wait for them.
func (e *Engine) Accuse(now monotime.Time, rank int, why Reason) {
	e.agree.Accuse(now, rank, why)
	e.accuseLeavers(now)
	e.conclude()
}

// Consent is what a member that does not have the group yet has consented to.
type Consent = agreement.Consent

// Uphold has a member that makes its group keep to what it has consented to before. Askers are
// ranks.
func (e *Engine) Uphold(c Consent) { e.agree.Uphold(c) }

// Doubt asks all members whether they are there.
func (e *Engine) Doubt(now monotime.Time) {
	e.agree.Begin(now)
	e.accuseLeavers(now)
	e.conclude()
}

func (e *Engine) accuseLeavers(now monotime.Time) {
	if e.leavers == 0 {
		return // as at nearly each report, of which there is one from each member
	}
	for rank := range e.peers {
		if e.peers[rank].left && e.agree.State() == agreement.Querying && !e.agree.Has(rank) {
			e.agree.Accuse(now, rank, Left)
		}
	}
}

// conclude ends the barriers that cannot succeed, once it is agreed who is gone.
func (e *Engine) conclude() {
	if e.gone == nil {
		if e.agree.State() < agreement.Decided {
			return
		}
		e.gone = failureOf(e.agree.Gone())
	}
	for i := len(e.waiting) - 1; i >= 0; i-- {
		if e.doomed(e.waiting[i]) {
			e.fail(e.waiting[i], e.gone)
		}
	}
}

// forsake notes that nothing more comes from a member. Once it is agreed who is gone, the barriers
// fail that went on and wait for it.
func (e *Engine) forsake(rank int) {
	for i := len(e.waiting) - 1; e.gone != nil && i >= 0; i-- {
		if m := e.waiting[i]; m.awaits(rank, e.plan) {
			e.fail(m, e.gone)
		}
	}
}

// doomed reports whether a barrier cannot succeed without the members that are gone. Another member
// that has left said which barriers it has completed: those go on.
func (e *Engine) doomed(m *machine) bool {
	for i, rank := range e.gone.Ranks {
		p := &e.peers[rank]
		if rank == e.cfg.Rank || e.gone.Reasons[i] != Left || p.left && !completed(p.done, m.number, m.generation) {
			return true
		}
	}
	return false
}

func (e *Engine) isGone(rank int) bool { return e.agree.Has(rank) }

// silent handles a member that is silent for too long.
func (e *Engine) silent(m *machine, now monotime.Time, rank int, why Reason) {
	if e.gone != nil { // all is agreed already, and this barrier went on until now
		e.fail(m, e.gone)
		return
	}
	e.Accuse(now, rank, why)
}

// wrap appends an agreement's reports as messages.
func (e *Engine) wrap(reports []agreement.Send, out []Send) []Send {
	for i := range reports {
		r := &reports[i]
		msg := e.message(Report, 0, 0, r.Report.Version)
		msg.Report, msg.Heard = &r.Report, e.incarnations[r.To] != 0
		out = append(out, Send{r.To, r.NIC, msg})
	}
	return out
}

// handleReport handles what a member knows of those that are gone.
func (e *Engine) handleReport(now monotime.Time, from int, msg *Message, out []Send) []Send {
	if n := len(msg.Report.Gone); n > 0 && msg.Report.Gone[n-1].Rank >= e.cfg.Size {
		e.stats.Unexpected++
		return out
	}
	answers := e.agree.Handle(now, from, msg.Incarnation, msg.Report, nil)
	if slices.ContainsFunc(msg.Report.Gone, func(g agreement.Gone) bool { return g.Rank == e.cfg.Rank }) {
		e.forsake(from)
	}
	e.accuseLeavers(now)
	e.conclude()
	for i := range answers {
		answers[i].NIC = msg.NIC
	}
	return e.wrap(answers, out)
}

// answerGone answers a message with the members that are gone.
func (e *Engine) answerGone(to int, msg *Message, out []Send) []Send {
	return e.wrap([]agreement.Send{e.agree.ReportTo(to, msg.NIC, false)}, out)
}

// answerFailure tells the sender of a message why a barrier does not succeed.
func (e *Engine) answerFailure(to int, msg *Message, f *Failure, out []Send) []Send {
	if f == e.gone {
		out = e.answerGone(to, msg, out)
		f = newFailure(f.Reasons[0], f.Ranks[0])
	}
	return append(out, e.answerFail(to, msg, f))
}

// failMessage makes the message that a generation cannot succeed.
func (e *Engine) failMessage(number uint8, generation uint32, f *Failure) Message {
	msg := e.message(Fail, number, 0, generation)
	msg.Failure = f
	return msg
}

// answerFail tells the sender of a message that its barrier cannot succeed.
func (e *Engine) answerFail(to int, msg *Message, f *Failure) Send {
	return Send{to, msg.NIC, e.failMessage(msg.Number, msg.Generation, f)}
}

// restarted handles a message that shows that a member has begun anew: the group is broken, for
// both.
func (e *Engine) restarted(now monotime.Time, member, from int, msg *Message, out []Send) []Send {
	e.peers[member].restarted = true
	e.forsake(member)
	e.Accuse(now, member, Restarted)
	if msg.Kind == Report && !msg.Report.Query {
		return out
	}
	if member != from {
		return e.answerGone(from, msg, out)
	}
	answer := e.agree.ReportTo(from, msg.NIC, false) // all that it has to know is that it cannot take part
	answer.Report = agreement.Report{Gone: []agreement.Gone{{Rank: from, Reason: Restarted}}}
	return e.wrap([]agreement.Send{answer}, out)
}

// handleOtherAlgorithm handles a message of another algorithm: neither side can succeed.
func (e *Engine) handleOtherAlgorithm(m *machine, from int, msg *Message, out []Send) []Send {
	f := newFailure(OtherAlgorithm, from, e.cfg.Rank)
	switch m.state {
	case Waiting:
		e.fail(m, f)
		out = append(out, Send{schedule.All, 0, e.failMessage(m.number, m.generation, f)})
	case Idle:
		m.pendingFailure = f
	}
	return append(out, e.answerFail(from, msg, f))
}

// handleFail handles the news that a barrier cannot succeed at its sender. Where members are gone,
// a report that says so came before.
func (e *Engine) handleFail(m *machine, now monotime.Time, msg *Message) {
	f := msg.Failure
	if slices.Max(f.Ranks) >= e.cfg.Size {
		e.stats.Unexpected++
		return
	}
	switch ahead := int32(msg.Generation - m.generation); {
	case ahead == 1 && f.Reasons[0] == OtherAlgorithm:
		m.pendingFailure = f
	case ahead != 0 || m.state != Waiting:
		e.stats.Late++
	case f.Reasons[0] == OtherAlgorithm:
		e.fail(m, f)
	case e.gone != nil: // the sender has not entered this generation, and never will, or has failed in it
		e.fail(m, e.gone)
	case f.Ranks[0] == e.cfg.Rank: // the others have left this generation, or took this member for gone
		e.Accuse(now, e.cfg.Rank, f.Reasons[0])
	}
}
