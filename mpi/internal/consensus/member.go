package consensus

import (
	"errors"
	"slices"
)

// Member is one process' part in the agreements of one communicator, which follow each other.
type Member struct {
	rank, size int
	down       Set
	accusers   Set    // of these, who has given this process up
	done       uint32 // how many agreements were decided
	last       Value  // of the last one
	excluded   bool

	running bool           // this process has given its part of agreement done + 1:
	mine    Message        // this
	backlog []Contribution // of those that follow
	states  []*Message     // of agreement done + 1, by rank

	proposing bool // as its coordinator
	awaited   Set  // who has not accepted
}

// ErrProtocol: a message makes no sense at this point.
var ErrProtocol = errors.New("consensus: a message that makes no sense")

// New makes the part of one of size processes.
func New(rank, size int) *Member {
	return &Member{rank: rank, size: size, states: make([]*Message, size)}
}

// Begin gives this process' part of the next agreement. Decided or Excluded follows, now or later:
// one for each Begin, in order.
func (m *Member) Begin(c Contribution, out []Output) []Output {
	switch {
	case m.excluded:
		return append(out, Output{Do: Excluded})
	case m.running:
		m.backlog = append(m.backlog, c)
		return out
	}
	m.running = true
	m.mine = Message{Kind: State, Number: m.done + 1, Contribution: c}
	return m.present(out)
}

// Down says that a process is down, for good.
func (m *Member) Down(rank int, out []Output) []Output {
	if m.down.Has(rank) || rank == m.rank {
		return out
	}
	was := m.coordinator()
	m.down = m.down.With(rank)
	m.awaited = m.awaited.Minus(m.down)
	switch {
	case !m.running:
		return out
	case m.coordinator() != was:
		return m.present(out)
	}
	return m.coordinate(out)
}

// GivenUpBy says that a process lives and has this one for down. It is down here, too: the two take
// nothing of each other any more.
func (m *Member) GivenUpBy(rank int, out []Output) []Output {
	if !m.down.Has(rank) && rank != m.rank {
		m.accusers = m.accusers.With(rank)
	}
	return m.Down(rank, out)
}

// LeftOut says that the others go on without this process, as it was told elsewhere.
func (m *Member) LeftOut(out []Output) []Output { return m.exclude(out) }

// Failed returns who is down or out.
func (m *Member) Failed() Set { return m.down.Union(m.last.Failed) }

// Handle takes in a message of another process. One that makes no sense changes nothing, and the
// error is ErrProtocol.
func (m *Member) Handle(from int, msg *Message, out []Output) ([]Output, error) {
	if from < 0 || from >= m.size || from == m.rank || !m.valid(msg) {
		return out, ErrProtocol
	}
	if m.down.Has(from) {
		return out, nil
	}
	switch msg.Kind {
	case State:
		return m.handleState(from, msg, out)
	case Propose:
		return m.handlePropose(from, msg, out)
	case Accept:
		return m.handleAccept(from, msg, out)
	case Decide:
		return m.handleDecide(msg, out)
	}
	return out, ErrProtocol
}

func (m *Member) valid(msg *Message) bool {
	for _, s := range []Set{
		msg.Contribution.Acknowledged, msg.Contribution.Down, msg.Value.Failed, msg.Value.Unacknowledged,
	} {
		if !s.Valid(m.size) {
			return false
		}
	}
	return msg.Number > 0 && int64(msg.Round) <= int64(m.size)
}

// coordinator returns the lowest rank that is neither down nor out, or this one's.
func (m *Member) coordinator() int {
	k := 0
	for k < m.rank && (m.down.Has(k) || m.last.Failed.Has(k)) {
		k++
	}
	return k
}

// present tells the coordinator what this process has. A coordinator in the place of another one
// asks the others so: one of them may know a decision, or await the one that is down here. Where
// the former coordinator may not have told the last decision to all, it goes before.
func (m *Member) present(out []Output) []Output {
	m.mine.Contribution.Down = m.Failed()
	c := m.coordinator()
	first := 0 // the coordinator, if nobody had died since the last agreement
	for m.last.Failed.Has(first) {
		first++
	}
	asks := func(k int) bool { return k == c && c != m.rank || c == m.rank && c != first && !m.last.Failed.Has(k) }
	if m.done > 0 && c != first {
		out = m.sendAll(m.decision(), asks, out)
	}
	return m.coordinate(m.sendAll(&m.mine, asks, out))
}

// sendAll sends a message to those for which a function holds and who are not down.
func (m *Member) sendAll(msg *Message, to func(rank int) bool, out []Output) []Output {
	for k := range m.size {
		if k != m.rank && !m.down.Has(k) && to(k) {
			out = append(out, Output{Do: Send, To: k, Message: *msg})
		}
	}
	return out
}

// coordinate proposes a value once all are heard, and decides on it once all have it.
func (m *Member) coordinate(out []Output) []Output {
	if !m.running || m.coordinator() != m.rank {
		return out
	}
	if !m.proposing {
		gone, complete := m.gone()
		if !complete {
			return out
		}
		if m.isOut() {
			return m.exclude(out)
		}
		m.proposing = true
		m.choose(gone)
		proposal := Message{Kind: Propose, Number: m.mine.Number, Value: m.mine.Value}
		heard := func(k int) bool { return m.states[k] != nil && !m.last.Failed.Has(k) }
		for k := range m.size {
			if heard(k) && !m.down.Has(k) {
				m.awaited = m.awaited.With(k)
			}
		}
		out = m.sendAll(&proposal, heard, out)
	}
	if len(m.awaited) > 0 {
		return out
	}
	return m.decide(&m.mine.Value, out)
}

// gone returns who is to be out: who is down or out here, and who is down to others that are not
// to be out; of two that say so of each other, the higher rank. It reports whether all others are
// heard.
func (m *Member) gone() (gone Set, complete bool) {
	gone = m.Failed()
	for k, s := range m.states { // before sets are made: this is asked for each State that comes
		foundDown := func(s *Message) bool { return s != nil && s.Contribution.Down.Has(k) }
		if s == nil && k != m.rank && !gone.Has(k) && !slices.ContainsFunc(m.states, foundDown) {
			return gone, false
		}
	}
	for k, s := range m.states {
		if s != nil && !gone.Has(k) {
			gone = gone.Union(s.Contribution.Down.Minus(Set{}.With(m.rank)))
		}
	}
	for k, s := range m.states {
		if s == nil && k != m.rank && !gone.Has(k) {
			return gone, false
		}
	}
	return gone, true
}

// isOut reports whether nobody else is left, and one has given this process up that no decision has
// left out: the others live, and go on.
func (m *Member) isOut() bool {
	failed := m.Failed()
	for k := range m.size {
		if k != m.rank && !failed.Has(k) {
			return false
		}
	}
	return len(m.accusers.Minus(m.last.Failed)) > 0
}

// choose sets the value that is proposed: the one that was proposed last, or a new one.
func (m *Member) choose(gone Set) {
	for _, s := range m.states {
		if s != nil && s.Round > m.mine.Round {
			m.mine.Round, m.mine.Value = s.Round, s.Value
		}
	}
	if m.mine.Round == 0 {
		m.mine.Value = m.value(gone)
	}
	m.mine.Round = uint32(m.rank) + 1
}

// value returns the value of what all have given that are not gone.
func (m *Member) value(gone Set) Value {
	v := Value{Flags: ^uint64(0), Failed: gone}
	for k, s := range m.states {
		if k == m.rank {
			s = &m.mine
		}
		if s == nil || gone.Has(k) {
			continue
		}
		c := &s.Contribution
		v.Flags &= c.Flags
		if v.Context == 0 {
			v.Context = c.Context
		}
		v.Unacknowledged = v.Unacknowledged.Union(gone.Minus(c.Acknowledged))
	}
	return v
}

// decide ends the agreement, tells those that have asked, and begins the next one.
func (m *Member) decide(v *Value, out []Output) []Output {
	m.done, m.last = m.done+1, *v
	out = m.tell(out)
	if v.Failed.Has(m.rank) {
		return m.exclude(out)
	}
	m.running, m.proposing, m.awaited = false, false, nil
	out = append(out, Output{Do: Decided, Value: m.last})
	if len(m.backlog) > 0 {
		c := m.backlog[0]
		m.backlog = m.backlog[1:]
		return m.Begin(c, out)
	}
	return out
}

// tell tells the decision to those that have asked for it.
func (m *Member) tell(out []Output) []Output {
	out = m.sendAll(m.decision(), func(k int) bool { return m.states[k] != nil }, out)
	clear(m.states)
	return out
}

func (m *Member) decision() *Message {
	return &Message{Kind: Decide, Number: m.done, Value: m.last}
}

// reply tells one process the last decision.
func (m *Member) reply(to int, out []Output) []Output {
	return append(out, Output{Do: Send, To: to, Message: *m.decision()})
}

func (m *Member) handleState(from int, msg *Message, out []Output) ([]Output, error) {
	switch {
	case msg.Number <= m.done:
		return m.reply(from, out), nil
	case msg.Number > m.done+1 || m.excluded:
		return out, ErrProtocol
	}
	s := *msg
	m.states[from] = &s
	return m.coordinate(out), nil
}

func (m *Member) handlePropose(from int, msg *Message, out []Output) ([]Output, error) {
	switch {
	case msg.Number <= m.done:
		return m.reply(from, out), nil
	case msg.Number > m.done+1 || !m.running || from != m.coordinator():
		return out, ErrProtocol
	}
	m.mine.Round, m.mine.Value = uint32(from)+1, msg.Value
	return append(out, Output{Do: Send, To: from, Message: Message{Kind: Accept, Number: msg.Number}}), nil
}

func (m *Member) handleAccept(from int, msg *Message, out []Output) ([]Output, error) {
	switch {
	case msg.Number <= m.done:
		return out, nil
	case msg.Number > m.done+1 || !m.awaited.Has(from):
		return out, ErrProtocol
	}
	m.awaited = m.awaited.Minus(Set{}.With(from))
	return m.coordinate(out), nil
}

func (m *Member) handleDecide(msg *Message, out []Output) ([]Output, error) {
	switch {
	case msg.Number <= m.done:
		return out, nil
	case msg.Value.Failed.Has(m.rank):
		m.done, m.last = msg.Number, msg.Value
		return m.exclude(m.tell(out)), nil
	case msg.Number > m.done+1 || !m.running:
		return out, ErrProtocol
	}
	return m.decide(&msg.Value, out), nil
}

// exclude ends all agreements: the others decide without this process.
func (m *Member) exclude(out []Output) []Output {
	if m.running {
		out = append(out, Output{Do: Excluded})
	}
	for range m.backlog {
		out = append(out, Output{Do: Excluded})
	}
	m.running, m.excluded, m.backlog = false, true, nil
	return out
}
