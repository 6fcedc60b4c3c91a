package engine

import (
	"cmp"
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// Reason is why a barrier failed.
type Reason uint8

// The reasons.
const (
	Silent         Reason = iota + 1 // members do not answer
	Left                             // members said goodbye before they entered
	Restarted                        // members have begun anew, or are not at the same generation
	OtherAlgorithm                   // members run another algorithm
	reasons
)

var reasonNames = [reasons]string{"", "silent", "left", "restarted", "another algorithm"}

// String names r.
func (r Reason) String() string { return reasonNames[min(int(r), len(reasonNames)-1)] }

// Failure is why a barrier failed, and through which members.
type Failure struct {
	Reason Reason
	Ranks  []int // sorted
	Others int   // how many more there are
}

// gone reports whether the members that f names take part in no barrier of the group any more.
func (f *Failure) gone() bool { return f.Reason != OtherAlgorithm }

// newFailure sorts the ranks, and keeps them.
func newFailure(reason Reason, ranks ...int) *Failure {
	slices.Sort(ranks)
	return &Failure{Reason: reason, Ranks: slices.Compact(ranks)}
}

// Failure returns why a number's barrier failed, or nil.
func (e *Engine) Failure(number uint8) *Failure {
	if m := e.machines[number]; m != nil {
		return m.failure
	}
	return nil
}

// pendingFailure returns why the next generation fails as soon as it is entered, or nil.
func (e *Engine) pendingFailure(m *machine) *Failure {
	return cmp.Or(m.pendingFailure, e.gone)
}

// failAll ends a barrier and tells all members.
func (e *Engine) failAll(m *machine, f *Failure, out []Send) []Send {
	e.fail(m, f)
	return append(out, Send{schedule.All, 0, e.failMessage(m.number, m.generation, f)})
}

// fail ends a barrier, and all others of the group if they cannot succeed either.
func (e *Engine) fail(m *machine, f *Failure) {
	m.state, m.failure = Failed, f
	e.end(m)
	if f.gone() {
		e.lose(f)
	}
}

// lose ends all barriers, as members take part no more. A member that has left said which barriers
// it has completed: those go on.
func (e *Engine) lose(f *Failure) {
	e.noteGone(f)
	for f.Reason != Left && len(e.waiting) > 0 {
		e.fail(e.waiting[0], f)
	}
}

// noteGone makes later generations fail, as members take part no more. The first reason stands.
func (e *Engine) noteGone(f *Failure) {
	switch {
	case e.gone == nil:
		e.gone = f
	case e.gone.Reason == f.Reason:
		others := max(e.gone.Others, f.Others) // at least: they may be the same
		e.gone = newFailure(f.Reason, append(slices.Clone(e.gone.Ranks), f.Ranks...)...)
		e.gone.Others = others
	}
}

func (e *Engine) isGone(rank int) bool { return e.gone != nil && slices.Contains(e.gone.Ranks, rank) }

// failMessage makes the message that a generation has failed.
func (e *Engine) failMessage(number uint8, generation uint32, f *Failure) Message {
	msg := e.message(Fail, number, 0, generation)
	msg.Failure = f
	return msg
}

// answerFail tells the sender of a message that its barrier has failed.
func (e *Engine) answerFail(to int, msg *Message, f *Failure) Send {
	return Send{to, msg.NIC, e.failMessage(msg.Number, msg.Generation, f)}
}

// restarted handles a message that shows that a member has begun anew: the group is broken, for
// both.
func (e *Engine) restarted(member, from int, msg *Message, out []Send) []Send {
	f := newFailure(Restarted, member)
	e.lose(f)
	if msg.Kind == Fail {
		return out
	}
	return append(out, e.answerFail(from, msg, f))
}

// handleOtherAlgorithm handles a message of another algorithm: neither side can succeed.
func (e *Engine) handleOtherAlgorithm(m *machine, from int, msg *Message, out []Send) []Send {
	f := newFailure(OtherAlgorithm, from, e.cfg.Rank)
	switch m.state {
	case Waiting:
		out = e.failAll(m, f, out)
	case Idle:
		m.pendingFailure = f
	}
	return append(out, e.answerFail(from, msg, f))
}

// handleFail handles the news that a barrier has failed elsewhere.
func (e *Engine) handleFail(m *machine, msg *Message) {
	f := msg.Failure
	if slices.Max(f.Ranks) >= e.cfg.Size {
		e.stats.Unexpected++
		return
	}
	switch ahead := int32(msg.Generation - m.generation); {
	case ahead == 0 && m.state == Waiting:
		e.fail(m, f)
	case ahead == 1:
		m.pendingFailure = f
	case !f.gone():
		e.stats.Late++
	}
	if f.gone() && !slices.Contains(f.Ranks, e.cfg.Rank) {
		e.noteGone(f)
	}
}
