// Package meeting is the protocol by which nodes find each other, as a state machine without I/O.
//
//	state     event                        next      sends
//	Seeking   deadline                     Seeking   "I am k, seeking" to all, on every network; then waits twice as long
//	Seeking   somebody new                 Seeking   the same at once, as that node may have missed it
//	Seeking   the last of the others       Met       "I am k, met", so that those who seek still hear it
//	Seeking   a conflict                   Failed    "I am k", so that the other one notices, too
//	Met       "I am j, seeking"            Met       "I am k, met"
//	Met       a conflict with itself       Met       the same: the newcomer notices
//	Met       a conflict of others         Met       - (to answer would let the newcomer in)
//	any       anything else                same      -
//
// Announcements are broadcast, as long as a node does not know whom to ask; there are n a round, and rounds become
// rarer. One that is lost is repeated.
package meeting

import (
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/mono"
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
)

// State of a meeting.
type State uint8

// The states.
const (
	Seeking State = iota
	Met
	Failed
)

// String names s.
func (s State) String() string { return [...]string{"seeking", "met", "failed"}[s%3] }

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

// Fault is why a meeting failed: two stations that cannot be in one cluster.
type Fault struct {
	Kind FaultKind
	A, B Station // B is the one that was heard
	Size int     // by OtherSize: what B expects
}

// Send is an announcement to be broadcast over all networks.
type Send struct{ Announcement Announcement }

// Meeting is one node's state.
type Meeting struct {
	self     Station
	size     int
	seed     uint64
	state    State
	heard    map[uint16]Station
	byMAC    map[transport.MAC]uint16
	fault    Fault
	next     mono.Time // when to announce next
	interval time.Duration
	answered mono.Time // when an announcement was sent last
}

// New begins a meeting of nodes 0 to size-1. The seed spreads the announcements of nodes started together.
func New(now mono.Time, self Station, size int, seed uint64) *Meeting {
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

// Fault returns why the meeting failed.
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
func (m *Meeting) Deadline() (at mono.Time, ok bool) { return m.next, m.state == Seeking }

// Advance announces if it is time to.
func (m *Meeting) Advance(now mono.Time, out []Send) []Send {
	if m.state != Seeking || now.Before(m.next) {
		return out
	}
	m.next = now.Add(m.interval + m.jitter())
	m.interval = min(2*m.interval, LastInterval)
	return m.announce(now, out)
}

// jitter is up to a quarter of the interval, by a linear congruential generator.
func (m *Meeting) jitter() time.Duration {
	m.seed = m.seed*6364136223846793005 + 1442695040888963407
	return time.Duration(m.seed>>40) * m.interval / (4 << 24)
}

func (m *Meeting) announce(now mono.Time, out []Send) []Send {
	m.answered = now
	return append(out, Send{Announcement{Seeking: m.state == Seeking, Size: uint16(m.size), MACs: m.self.MACs, Name: m.self.Name}})
}

// Handle takes an announcement of a node, that came from an address over a network.
func (m *Meeting) Handle(now mono.Time, node uint16, src transport.MAC, nic int, a *Announcement, out []Send) []Send {
	if m.state == Failed || int(a.NIC) >= len(a.MACs) || a.MACs[a.NIC] != src {
		return out // forged, or by way of something that changes addresses
	}
	if node == m.self.Node && slices.Equal(a.MACs, m.self.MACs) {
		return out // our own, come back
	}
	s := Station{Node: node, MACs: a.MACs, Name: a.Name, NIC: nic}
	if f := m.check(&s, a, nic); f.Kind != NoFault {
		switch {
		case m.state == Met && f.A.Node == m.self.Node:
			return m.answer(now, out) // this cluster is complete; the newcomer hears who is in it, and fails
		case m.state == Met:
			return out // it is another's place that the newcomer claims: to answer would be to let it in
		}
		m.fault = f
		out = m.announce(now, out)
		m.state = Failed
		return out
	}
	_, known := m.heard[node]
	if !known {
		m.heard[node] = s
		for _, mac := range s.MACs {
			m.byMAC[mac] = node
		}
		if len(m.heard) == m.size-1 {
			m.state = Met
		}
		return m.announce(now, out)
	}
	if a.Seeking && m.state == Met {
		return m.answer(now, out)
	}
	return out
}

// answer announces unless that has just been done.
func (m *Meeting) answer(now mono.Time, out []Send) []Send {
	if now.Sub(m.answered) < AnswerInterval {
		return out // what was sent is on its way, and the other one will ask again
	}
	return m.announce(now, out)
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
