// Package discovery is the protocol by which nodes find each other, as a state machine without I/O.
//
//	state     event                        next      sends
//	Seeking   deadline                     Seeking   "I am k, seeking" to all, on every network; then waits twice as long
//	Seeking   somebody new                 Seeking   the same soon, as that node may have missed it
//	Seeking   the last of the others       Settling  "I am k, met" soon, so that those who seek still hear it
//	Seeking   a conflict                   Failed    "I am k", so that the other one notices, too
//	Settling  "I am j, seeking"            Settling  "I am k, met" soon
//	Settling  a conflict                   Failed    "I am k"
//	Settling  SettleInterval is over       Met       -
//	Met       "I am j, seeking"            Met       "I am k, met", unless that was said within AnswerInterval
//	Met       a conflict with itself       Met       the same: the newcomer notices
//	Met       a conflict of others         Met       - (to answer would let the newcomer in)
//	any       anything else                same      -
//
// Announcements are broadcast, as long as a node does not know whom to ask; there are n a round, and rounds become
// rarer. One that is lost is repeated.
//
// "Soon" is at once, but AnswerInterval after the announcement before at the earliest: a node that hears all others
// within a millisecond answers them all by one announcement, so that n nodes cost less than 4n, not n*n. Nodes that
// start over a longer time cost about n more for each two milliseconds of it.
//
// Settling is for two nodes of one number, started together in a cluster that needs only one of them: each may hear
// the last of the others before it hears its double. A node that has met has listened for SettleInterval without
// hearing of a conflict, and has said who it is at least twice, AnswerInterval apart; those that come later are refused.
// Where nothing is lost, two nodes of one number therefore never both meet. Where both lose all that the other says in
// that time, they do.
package discovery

import (
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Timing of announcements.
const (
	// FirstInterval is between the first two: nodes that are started by one command are up within milliseconds.
	FirstInterval = 5 * time.Millisecond
	// LastInterval bounds how long a node that comes late is not heard if nobody is met yet.
	LastInterval = 250 * time.Millisecond
	// AnswerInterval bounds how often a node answers: 1,000 nodes that come at once are one answer.
	AnswerInterval = time.Millisecond
	// SettleInterval is how long a node that knows all others listens for conflicts: a few answers' time.
	SettleInterval = 5 * time.Millisecond
)

// State of a meeting.
type State uint8

// The states.
const (
	Seeking  State = iota // some of the others were not heard yet
	Settling              // all were heard; listens for conflicts
	Met
	Failed
)

// String names s.
func (s State) String() string { return [...]string{"seeking", "settling", "met", "failed"}[s%4] }

// Station is what is known of a node.
type Station struct {
	Node uint16
	MACs []transport.MAC
	Name string
	NIC  int // the network on which it was heard first
}

// FaultKind says why a meeting failed.
type FaultKind uint8

// The faults.
const (
	NoFault      FaultKind = iota
	SameNumber             // two nodes of one number
	SameAddress            // two numbers with one address
	OutOfRange             // a number that is not below the cluster's size
	OtherSize              // a node that expects another number of nodes
	OtherNetwork           // a node with another number of NICs, or cabled in another order
)

// Fault is two stations that cannot be in one cluster.
type Fault struct {
	Kind FaultKind
	A, B Station // B is the one that was heard
	Size int     // by OtherSize: what B expects
}

// Send is an announcement to be broadcast over all networks.
type Send struct{ Announcement Announcement }

// Meeting is one node's state.
type Meeting struct {
	self      Station
	size      int
	seed      uint64
	state     State
	heard     map[uint16]Station
	byMAC     map[transport.MAC]uint16
	fault     Fault
	interval  time.Duration // between announcements unasked; doubles
	next      monotime.Time // Seeking: when to announce unasked
	soon      bool          // something new is to be said AnswerInterval after announced
	announced monotime.Time // when an announcement was sent last; before the first, the origin
	settled   monotime.Time // Settling: when that is over
}

// New begins a meeting of nodes 0 to size-1. The seed spreads the announcements of nodes started together.
func New(now monotime.Time, self Station, size int, seed uint64) *Meeting {
	m := &Meeting{
		self: self, size: size, seed: seed, interval: FirstInterval, next: now,
		heard: make(map[uint16]Station), byMAC: make(map[transport.MAC]uint16),
	}
	for _, mac := range self.MACs {
		m.byMAC[mac] = self.Node
	}
	if size == 1 {
		m.state = Met
	}
	return m
}

// State returns the state.
func (m *Meeting) State() State { return m.state }

// Fault returns why the meeting failed or, once met, why somebody was refused last. Kind is NoFault if neither happened.
func (m *Meeting) Fault() Fault { return m.fault }

// Heard returns the others that were heard, sorted by number.
func (m *Meeting) Heard() []Station {
	var list []Station
	for _, s := range m.heard {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Station) int { return int(a.Node) - int(b.Node) })
	return list
}

// Missing returns the numbers that were not heard.
func (m *Meeting) Missing() (nodes []uint16) {
	for k := range m.size {
		if _, ok := m.heard[uint16(k)]; !ok && uint16(k) != m.self.Node {
			nodes = append(nodes, uint16(k))
		}
	}
	return nodes
}

// Deadline returns when to call Advance; ok is false once there is nothing to do unasked.
func (m *Meeting) Deadline() (at monotime.Time, ok bool) {
	if m.state == Met || m.state == Failed {
		return monotime.Time{}, false
	}
	at = m.next
	if m.state == Settling {
		at = m.settled
	}
	if answer := m.announced.Add(AnswerInterval); m.soon && answer.Before(at) {
		at = answer
	}
	return at, true
}

// Advance announces if it is time to, and ends the settling.
func (m *Meeting) Advance(now monotime.Time, out []Send) []Send {
	at, ok := m.Deadline()
	if !ok || now.Before(at) {
		return out
	}
	switch {
	case m.state == Seeking && !now.Before(m.next):
		m.next = now.Add(m.interval + m.jitter())
		m.interval = min(2*m.interval, LastInterval)
		out = m.announce(now, out)
	case m.soon:
		out = m.announce(now, out)
	}
	if m.state == Settling && !now.Before(m.settled) {
		m.state = Met
	}
	return out
}

// jitter is up to a quarter of the interval, by a linear congruential generator.
func (m *Meeting) jitter() time.Duration {
	m.seed = m.seed*6364136223846793005 + 1442695040888963407
	return time.Duration(m.seed>>40) * m.interval / (4 << 24)
}

// announce says who this node is. One that hears all others before it has said anything says it once more soon: a
// double that has met, and has just answered somebody, is silent at the first.
func (m *Meeting) announce(now monotime.Time, out []Send) []Send {
	first := m.announced == monotime.Time{}
	m.announced, m.soon = now, first && m.state == Settling
	return append(out, Send{Announcement{Seeking: m.state == Seeking, Size: uint16(m.size), MACs: m.self.MACs, Name: m.self.Name}})
}

// answer announces, unless that has just been done: then Advance does it soon. Once met, nobody calls Advance, and
// what was sent must do: it is on its way, and who has missed it asks again.
func (m *Meeting) answer(now monotime.Time, out []Send) []Send {
	if now.Sub(m.announced) < AnswerInterval {
		m.soon = m.state != Met
		return out
	}
	return m.announce(now, out)
}

// Handle takes an announcement of a node, that came from an address over a network.
func (m *Meeting) Handle(now monotime.Time, node uint16, src transport.MAC, nic int, a *Announcement, out []Send) []Send {
	if m.state == Failed || int(a.NIC) >= len(a.MACs) || a.MACs[a.NIC] != src {
		return out // forged, or by way of something that changes addresses
	}
	if node == m.self.Node && slices.Equal(a.MACs, m.self.MACs) {
		return out // our own, come back
	}
	s := Station{Node: node, MACs: a.MACs, Name: a.Name, NIC: nic}
	if f := m.check(&s, a, nic); f.Kind != NoFault {
		return m.refuse(now, f, out)
	}
	if _, known := m.heard[node]; !known {
		m.enter(now, s)
		return m.answer(now, out)
	}
	if a.Seeking && m.state != Seeking {
		return m.answer(now, out)
	}
	return out
}

// refuse ends the meeting, unless the cluster is complete without the station that was heard.
func (m *Meeting) refuse(now monotime.Time, f Fault, out []Send) []Send {
	m.fault = f
	switch {
	case m.state != Met:
		out = m.announce(now, out)
		m.state = Failed
		return out
	case f.A.Node == m.self.Node:
		return m.answer(now, out) // the newcomer hears who is in the cluster, and fails
	}
	return out // it is another's place that the newcomer claims: to answer would be to let it in
}

// enter takes note of somebody new.
func (m *Meeting) enter(now monotime.Time, s Station) {
	m.heard[s.Node] = s
	for _, mac := range s.MACs {
		m.byMAC[mac] = s.Node
	}
	if len(m.heard) == m.size-1 {
		m.state = Settling
		m.settled = now.Add(SettleInterval)
	}
}

// check says what keeps a station out of this cluster.
func (m *Meeting) check(s *Station, a *Announcement, nic int) Fault {
	fault := func(kind FaultKind, other Station) Fault {
		return Fault{Kind: kind, A: other, B: *s, Size: int(a.Size)}
	}
	if s.Node == m.self.Node {
		return fault(SameNumber, m.self)
	}
	if old, ok := m.heard[s.Node]; ok && !slices.Equal(old.MACs, s.MACs) {
		return fault(SameNumber, old)
	}
	for _, mac := range s.MACs {
		if owner, ok := m.byMAC[mac]; ok && owner != s.Node {
			other := m.self
			if owner != m.self.Node {
				other = m.heard[owner]
			}
			return fault(SameAddress, other)
		}
	}
	if int(a.Size) != m.size {
		return fault(OtherSize, m.self)
	}
	if int(s.Node) >= m.size {
		return fault(OutOfRange, m.self)
	}
	if len(s.MACs) != len(m.self.MACs) || int(a.NIC) != nic {
		return fault(OtherNetwork, m.self)
	}
	return Fault{}
}
