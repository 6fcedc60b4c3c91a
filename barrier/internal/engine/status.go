package engine

import "github.com/rawlane/rawlane/barrier/schedule"

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

// RequestStatus asks all members whether they have entered the last generation of a number that
// this one has entered; the first, if it has entered none. Each number has a request of its own.
func (e *Engine) RequestStatus(number uint8, out []Send) []Send {
	m := e.machine(number)
	m.status, m.statusOf = make([]Presence, e.cfg.Size), m.generation
	m.status[e.cfg.Rank] = Entered
	if m.entered.IsZero() {
		m.statusOf, m.status[e.cfg.Rank] = 1, NotEntered
	}
	return append(out, Send{schedule.All, 0, e.message(StatusRequest, number, 0, m.statusOf)})
}

// RepeatStatus asks again the members that have not answered.
func (e *Engine) RepeatStatus(number uint8, out []Send) []Send {
	m := e.machine(number)
	request := e.message(StatusRequest, number, 0, m.statusOf)
	for rank, p := range m.status {
		if p == NoAnswer {
			out = append(out, Send{rank, 0, request})
		}
	}
	return out
}

// Status returns by rank the answers to a number's last status request; nil if there was none.
func (e *Engine) Status(number uint8) []Presence { return e.machine(number).status }

func (e *Engine) answerStatus(m *machine, from int, msg *Message, out []Send) []Send {
	answer := e.answer(StatusReply, from, msg)
	answer.Message.Entered = m.hasEntered(msg.Generation)
	return append(out, answer)
}

// handleStatus handles an answer. An answer of another generation belongs to an earlier request.
// This member may have entered a later generation since the request.
func (e *Engine) handleStatus(m *machine, from int, msg *Message) {
	if m.status == nil || msg.Generation != m.statusOf {
		return
	}
	switch {
	case msg.Kind == NoSuchGroup:
		if m.status[from] == NoAnswer { // else it is late
			m.status[from] = NoGroup
		}
	case msg.Entered:
		m.status[from] = Entered
	default:
		m.status[from] = NotEntered
	}
}
