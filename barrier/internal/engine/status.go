package engine

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// Presence is a member's answer to a status request.
type Presence uint8

// The answers.
const (
	NoAnswer   Presence = iota // none yet
	Entered                    // the member has entered the generation
	NotEntered                 // it has not
	NoGroup                    // the group does not exist there
)

// String names p.
func (p Presence) String() string {
	return [...]string{"no answer", "entered", "not entered", "has no such group"}[p%4]
}

// Query is a status request, and its answers so far. Each asker has its own, and ends it.
type Query struct {
	// Answers are by rank.
	Answers    []Presence
	number     uint8
	generation uint32 // that it asks for
}

// BeginQuery asks all members whether they have entered the last generation of a number that this
// one has entered; the first, if it has entered none.
func (e *Engine) BeginQuery(number uint8, out []Send) (*Query, []Send) {
	m := e.machine(number)
	q := &Query{make([]Presence, e.cfg.Size), number, m.generation}
	q.Answers[e.cfg.Rank] = Entered
	if m.entered.IsZero() {
		q.generation, q.Answers[e.cfg.Rank] = 1, NotEntered
	}
	m.queries = append(m.queries, q)
	return q, e.request(q, schedule.All, out)
}

// RepeatQuery asks again the members that have not answered.
func (e *Engine) RepeatQuery(q *Query, out []Send) []Send {
	for rank, p := range q.Answers {
		if p == NoAnswer {
			out = e.request(q, rank, out)
		}
	}
	return out
}

// request appends a query's message to a member, or to all, by each network: one of them may be why
// the barrier is late. A member answers by the network that the message came by.
func (e *Engine) request(q *Query, to int, out []Send) []Send {
	for nic := range e.cfg.NICs {
		out = append(out, Send{to, nic, e.message(StatusRequest, q.number, 0, q.generation)})
	}
	return out
}

// EndQuery ends a query: it takes no more answers.
func (e *Engine) EndQuery(q *Query) {
	m := e.machine(q.number)
	m.queries = slices.DeleteFunc(m.queries, func(other *Query) bool { return other == q })
}

func (e *Engine) answerStatus(m *machine, from int, msg *Message, out []Send) []Send {
	answer := e.answer(StatusReply, from, msg)
	answer.Message.Entered = m.hasEntered(msg.Generation)
	return append(out, answer)
}

// handleStatus handles an answer, which is for all queries of its generation. This member may have
// entered a later one since they were made.
func (e *Engine) handleStatus(m *machine, from int, msg *Message) {
	for _, q := range m.queries {
		switch {
		case msg.Generation != q.generation:
		case msg.Kind == NoSuchGroup:
			if q.Answers[from] == NoAnswer { // else it is late
				q.Answers[from] = NoGroup
			}
		case msg.Entered:
			q.Answers[from] = Entered
		default:
			q.Answers[from] = NotEntered
		}
	}
}
