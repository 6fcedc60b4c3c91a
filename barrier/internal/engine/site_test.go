package engine

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
)

// site is a node: engines, driven as package barrier drives them, without network and locks.
// Simulations, transcripts and tests carry its frames each in their own way.
type site struct {
	node    int
	members []*member
	post    func(to []int, nic int, b []byte) // has a frame sent to nodes; b is the callee's
	ended   func(m *member, number uint8)     // a barrier was left or has failed
}

// member is a node's part in one group.
type member struct {
	*Engine
	site  *site
	nodes []int // by rank
	left  bool  // it has said goodbye, and forgotten its engine but for the goodbye
	out   []Send
}

// join makes the site a member of a group of nodes.
func (s *site) join(cfg Config, nodes []int) *member {
	cfg.Rank, cfg.Size = slices.Index(nodes, s.node), len(nodes)
	m := &member{Engine: New(cfg), site: s, nodes: nodes}
	s.members = append(s.members, m)
	return m
}

func (s *site) member(identity Identity) *member {
	for _, m := range s.members {
		if m.cfg.Identity == identity {
			return m
		}
	}
	return nil
}

// receive takes a frame.
func (s *site) receive(now monotime.Time, from, nic int, b []byte) {
	var msg Message
	if Parse(b, &msg) != nil {
		return
	}
	msg.NIC = nic
	m := s.member(msg.Identity)
	if m == nil || m.left {
		s.answerUnknown(now, m, from, &msg)
		return
	}
	if rank := slices.Index(m.nodes, from); rank >= 0 {
		m.flush(m.Handle(now, rank, &msg, m.out[:0]))
	}
}

// answerUnknown answers a message of a group that does not exist here, not yet or not any
// longer.
func (s *site) answerUnknown(now monotime.Time, m *member, from int, msg *Message) {
	answer := Message{Kind: NoSuchGroup, Number: msg.Number, Identity: msg.Identity, Generation: msg.Generation, Answers: msg.Kind, Heard: msg.Heard}
	switch {
	case (msg.Kind == Nack || msg.Kind == Report) && m != nil:
		rank := slices.Index(m.nodes, from)
		if rank < 0 {
			return
		}
		if out, ok := m.Farewell(now, rank, msg, nil); ok {
			m.flush(out)
			return
		}
	case msg.Kind == Nack, msg.Kind == StatusRequest, msg.Kind == Report:
	case msg.Kind == Bye:
		answer.Kind, answer.Algorithm = ByeAck, msg.Algorithm
	default:
		return
	}
	s.post([]int{from}, msg.NIC, answer.Append(nil))
}

// arrive enters a barrier.
func (m *member) arrive(now monotime.Time, number uint8) error {
	out, err := m.Arrive(now, number, m.out[:0])
	m.flush(out)
	return err
}

// advance does what is due, in all groups.
func (s *site) advance(now monotime.Time) {
	for _, m := range s.members {
		m.flush(m.Advance(now, m.out[:0]))
	}
}

// deadline is the earliest of all groups.
func (s *site) deadline() (at monotime.Time, ok bool) {
	for _, m := range s.members {
		if t, waits := m.Deadline(); waits && !m.left && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

// flush sends an engine's messages, and reports the barriers that ended.
func (m *member) flush(out []Send) {
	m.out = out
	for i := range out {
		var to []int
		if out[i].To == schedule.All {
			to = m.others()
		} else {
			to = []int{m.nodes[out[i].To]}
		}
		m.site.post(to, out[i].NIC, out[i].Message.Append(nil))
	}
	for _, number := range slices.Clone(m.Ended()) {
		m.site.ended(m, number)
	}
}

// others are the nodes that a multicast reaches.
func (m *member) others() []int {
	others := slices.Clone(m.nodes)
	return slices.DeleteFunc(others, func(n int) bool { return n == m.site.node })
}

// algorithm parses a name.
func algorithm(name string) schedule.Algorithm {
	a, err := schedule.Parse(name)
	if err != nil {
		panic(err)
	}
	return a
}
