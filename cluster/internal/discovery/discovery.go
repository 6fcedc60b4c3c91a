// Package discovery is the protocol by which nodes find each other, as a state machine without I/O.
//
//	state     event                    next      sends
//	Seeking   deadline                 Seeking   "I am k, seeking"; the interval doubles
//	Seeking   a new node               Seeking   "I am k, seeking" soon
//	Seeking   the last other node      Settling  "I am k, complete" soon
//	Seeking   a conflict               Failed    "I am k, failed": the other one notices too
//	Seeking   another size, 3 times    Failed    the same; before that, nothing
//	Seeking   other NICs, 3 times      Failed    the same
//	Seeking   a number's other address Seeking   -; the number does not count as heard: until its
//	                                             first address is heard again, a conflict, or was
//	                                             silent: the node has begun anew
//	Seeking   "I am j, failed"         Seeking   -; j does not count as heard
//	Settling  "I am j, seeking"        Settling  "I am k, complete" soon
//	Settling  a conflict               Failed    "I am k, failed"
//	Settling  the last two above       Seeking   as there
//	Settling  SettleInterval is over   Complete  -
//	Complete  "I am j, seeking"        Complete  "I am k, complete" to j, once per AnswerInterval
//	any       a known node elsewhere   same      as above; it has begun anew, and has a new place
//	Complete  a conflict with itself   Complete  the same: the newcomer notices
//	Complete  a conflict of others     Complete  - (an answer would let the newcomer in)
//	any       anything else            same      -
//
// Announcements are broadcast on every network, as a node does not know the others' addresses yet;
// but what a complete node answers goes to the one that asked. There are n of them in a round, and
// rounds become rarer. Lost ones are repeated.
//
// "Soon" means at once, but no earlier than AnswerInterval after the last announcement. A node that
// hears all others within a millisecond answers them all by one announcement, so n nodes send fewer
// than 4n, not n*n. Nodes that start over a longer time send about n more for each two
// milliseconds.
//
// Settling is for two nodes with one number, started together in a cluster that has one of them:
// each may hear the last of the others before it hears its double. A complete node has listened for
// SettleInterval without a conflict, and has announced itself at least twice, AnswerInterval apart;
// nodes that come later are refused. If nothing is lost, two nodes with one number are never both
// complete. If each loses all announcements of the other in that time, they are.
package discovery

import (
	"maps"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Timing of announcements.
const (
	// FirstInterval is between the first two announcements: nodes started by one command are up
	// within milliseconds.
	FirstInterval = 5 * time.Millisecond
	// LastInterval is the longest interval: a late node is heard within it while others still seek.
	LastInterval = 250 * time.Millisecond
	// AnswerInterval is between two answers of a node: 1,000 nodes that come at once get one.
	AnswerInterval = time.Millisecond
	// A station that expects another cluster ends discovery when it has said so sureTimes, and for
	// sureAfter: as a node does that was started with another number, and no stray frame.
	sureTimes = 3
	sureAfter = 500 * time.Millisecond
	// suspectFor is how long it is suspected. If it is there, it announces itself six times then.
	suspectFor = 2 * time.Second
	// SettleInterval is how long a node that has heard all others listens for conflicts: the time
	// of a few answers.
	SettleInterval = 5 * time.Millisecond
	// silentFor is how long a node is silent whose number another one claims, before that one takes
	// its place: it has begun anew. If it is there, it seeks, or answers this node, meanwhile.
	silentFor = 3 * LastInterval
)

// State of a Discovery.
type State uint8

// The states.
const (
	Seeking  State = iota // some other nodes were not heard yet
	Settling              // all were heard; the node listens for conflicts
	Complete
	Failed
)

// String names s.
func (s State) String() string { return [...]string{"seeking", "settling", "complete", "failed"}[s%4] }

// Station is what a node has announced of itself.
type Station struct {
	Node uint16
	MACs []transport.MAC
	Name string
	NIC  int // the network on which it was heard first

	Place Place // where it runs; a process that began anew may bring another one
}

// FaultKind is why two stations cannot be in one cluster.
type FaultKind uint8

// The faults.
const (
	NoFault      FaultKind = iota
	SameNumber             // two nodes with one number
	SameAddress            // two numbers with one address
	OutOfRange             // a number that is not below the cluster's size
	OtherSize              // a node that expects another number of nodes
	OtherNetwork           // a node with another number of NICs, or cabled in another order
)

// Fault is two stations that cannot be in one cluster.
type Fault struct {
	Kind FaultKind
	A, B Station // B is the one that was heard
	Size int     // OtherSize: what B expects
}

// Send is an announcement to send on all networks: to all or, with One, to a station alone.
type Send struct {
	Announcement Announcement
	One          bool
	To           Station
}

// suspicion is of a station that expects another cluster.
type suspicion struct {
	since, last monotime.Time
	times       int
}

// Discovery is one node's part in the protocol.
type Discovery struct {
	self      Station
	size      int
	seed      uint64
	state     State
	heard     map[uint16]Station
	byMAC     map[transport.MAC]uint16
	fault     Fault
	interval  time.Duration // between unasked announcements; doubles
	next      monotime.Time // Seeking: when to announce unasked
	soon      bool          // announce again AnswerInterval after announced
	announced monotime.Time // the last announcement; the origin before the first
	settled   monotime.Time // Settling: when that is over

	moves    int                      // places that have changed
	answered map[uint16]monotime.Time // Complete: when a station was answered last
	suspects map[uint16]suspicion     // by number: 65,536 at most
	doubts   map[uint16]doubt         // of stations that were heard, and do not count
}

// New begins discovery among nodes 0 to size-1. The seed spreads the announcements of nodes that
// are started together.
func New(now monotime.Time, self Station, size int, seed uint64) *Discovery {
	d := &Discovery{
		self: self, size: size, seed: seed, interval: FirstInterval, next: now,
		heard: make(map[uint16]Station), byMAC: make(map[transport.MAC]uint16),
		answered: make(map[uint16]monotime.Time), suspects: make(map[uint16]suspicion),
		doubts: make(map[uint16]doubt),
	}
	for _, mac := range self.MACs {
		d.byMAC[mac] = self.Node
	}
	if size == 1 {
		d.state = Complete
	}
	return d
}

// State returns the state.
func (d *Discovery) State() State { return d.state }

// Fault returns why discovery failed or, once complete, why a station was refused last. Kind is
// NoFault if neither happened.
func (d *Discovery) Fault() Fault { return d.fault }

// Heard returns the other stations that were heard, sorted by number.
func (d *Discovery) Heard() []Station {
	return slices.SortedFunc(maps.Values(d.heard), func(a, b Station) int { return int(a.Node) - int(b.Node) })
}

// Moves returns how often a station that was heard before has told another place.
func (d *Discovery) Moves() int { return d.moves }

// Missing returns the numbers of nodes that were not heard.
func (d *Discovery) Missing() (nodes []uint16) {
	for k := range d.size {
		_, ok := d.heard[uint16(k)]
		_, doubted := d.doubts[uint16(k)]
		if (!ok || doubted) && uint16(k) != d.self.Node {
			nodes = append(nodes, uint16(k))
		}
	}
	return nodes
}

// Deadline returns when to call Advance; ok is false when there is nothing to do.
func (d *Discovery) Deadline() (at monotime.Time, ok bool) {
	if d.state == Complete || d.state == Failed {
		return monotime.Time{}, false
	}
	at = d.next
	if d.state == Settling {
		at = d.settled
	}
	if answer := d.announced.Add(AnswerInterval); d.soon && answer.Before(at) {
		at = answer
	}
	return at, true
}

// Advance announces if it is time to, and ends Settling.
func (d *Discovery) Advance(now monotime.Time, out []Send) []Send {
	at, ok := d.Deadline()
	if !ok || now.Before(at) {
		return out
	}
	d.endDoubts(now)
	switch {
	case d.state == Seeking && !now.Before(d.next):
		d.next = now.Add(d.interval + d.jitter())
		d.interval = min(2*d.interval, LastInterval)
		out = d.announce(now, out)
	case d.soon:
		out = d.announce(now, out)
	}
	if d.state == Settling && !now.Before(d.settled) {
		d.state = Complete
	}
	return out
}

// jitter is up to a quarter of the interval, by a linear congruential generator.
func (d *Discovery) jitter() time.Duration {
	d.seed = d.seed*6364136223846793005 + 1442695040888963407
	return time.Duration(d.seed>>40) * d.interval / (4 << 24)
}

// announce announces this node. A node that has heard all others before its first announcement
// makes another one soon: a double that is complete and has just answered does not answer the
// first.
func (d *Discovery) announce(now monotime.Time, out []Send) []Send {
	first := d.announced == monotime.Time{}
	d.announced, d.soon = now, first && d.state == Settling
	return append(out, Send{Announcement: d.own()})
}

// own returns the announcement of this node.
func (d *Discovery) own() Announcement {
	return Announcement{Seeking: d.state == Seeking, Size: uint16(d.size), MACs: d.self.MACs, Name: d.self.Name,
		Place: d.self.Place}
}

// answerOne tells a station alone that this node is complete: a frame of one node, which anybody
// may repeat, is not worth one from each node to all.
func (d *Discovery) answerOne(now monotime.Time, s Station, out []Send) []Send {
	if last, ok := d.answered[s.Node]; ok && now.Sub(last) < AnswerInterval {
		return out
	}
	d.answered[s.Node] = now
	return append(out, Send{Announcement: d.own(), One: true, To: s})
}

// answer announces, unless the last announcement was just now: then Advance does it soon. A
// complete node has no Advance to do it: the last announcement is on its way, and a node that
// misses it asks again.
func (d *Discovery) answer(now monotime.Time, out []Send) []Send {
	if now.Sub(d.announced) < AnswerInterval {
		d.soon = d.state != Complete
		return out
	}
	return d.announce(now, out)
}

// Handle takes the announcement of a node, received from address src by network nic.
func (d *Discovery) Handle(
	now monotime.Time, node uint16, src transport.MAC, nic int, a *Announcement, out []Send,
) []Send {
	if d.state == Failed || int(a.NIC) >= len(a.MACs) || a.MACs[a.NIC] != src {
		return out // forged, or an address was changed on the way
	}
	if node == d.self.Node && slices.Equal(a.MACs, d.self.MACs) && !d.isClone(a.Place) {
		return out // this node's own, which came back
	}
	s := Station{Node: node, MACs: a.MACs, Name: a.Name, NIC: nic, Place: a.Place}
	if f := d.check(&s, a, nic); f.Kind != NoFault {
		if d.state != Complete && !d.isSure(now, f) || d.mayHaveBegunAnew(now, f, a) {
			return out
		}
		return d.refuse(now, f, out)
	}
	delete(d.suspects, node)
	if d.state != Complete {
		if f := d.hearDoubted(now, s, a); f.Kind != NoFault {
			return d.refuse(now, f, out)
		}
		if a.Failed {
			return out
		}
	}
	if _, known := d.heard[node]; !known {
		d.enter(now, s)
		return d.answer(now, out)
	}
	if known := d.heard[node]; known.Place != a.Place { // one that has begun anew need not seek
		known.Place = a.Place
		d.heard[node] = known
		d.moves++
	}
	switch {
	case a.Seeking && d.state == Complete:
		return d.answerOne(now, d.heard[node], out)
	case a.Seeking && d.state == Settling:
		return d.answer(now, out)
	}
	return out
}

// isClone reports whether a node of this one's number and addresses is on another host: a clone of
// this machine, both of which run.
func (d *Discovery) isClone(p Place) bool {
	return p.Host != d.self.Place.Host && p.Host != 0 && d.self.Place.Host != 0
}

// isSure reports whether a fault may end discovery. That a station expects another cluster may be
// one stray frame, of a program that ran before or of nobody here: it must say so again. Who seeks
// does, every LastInterval at least.
func (d *Discovery) isSure(now monotime.Time, f Fault) bool {
	otherNICs := f.Kind == OtherNetwork && len(f.A.MACs) != len(f.B.MACs)
	if f.Kind != OtherSize && f.Kind != OutOfRange && !otherNICs {
		return true // it may be in this cluster, which could be complete before it says so again
	}
	d.fault = f
	s, known := d.suspects[f.B.Node]
	if !known || now.Sub(s.last) >= suspectFor {
		s = suspicion{since: now} // what was long ago was a stray frame
	}
	s.last = now
	s.times++
	d.suspects[f.B.Node] = s
	return s.times >= sureTimes && now.Sub(s.since) >= sureAfter
}

// refuse fails, unless the cluster is complete without the station that was heard.
func (d *Discovery) refuse(now monotime.Time, f Fault, out []Send) []Send {
	d.fault = f
	switch {
	case d.state != Complete:
		out = d.announce(now, out)
		out[len(out)-1].Announcement.Failed = true
		d.state = Failed
		return out
	case f.A.Node == d.self.Node:
		return d.answer(now, out) // the newcomer hears this node, and fails
	}
	return out // the newcomer claims another node's place: an answer would let it in
}

// enter adds a station.
func (d *Discovery) enter(now monotime.Time, s Station) {
	d.heard[s.Node] = s
	for _, mac := range s.MACs {
		d.byMAC[mac] = s.Node
	}
	d.settle(now)
}

// settle begins to settle if all others were heard, and count.
func (d *Discovery) settle(now monotime.Time) {
	if d.state == Seeking && len(d.heard) == d.size-1 && len(d.doubts) == 0 {
		d.state = Settling
		d.settled = now.Add(SettleInterval)
	}
}

// check returns what keeps a station out of this cluster, if anything.
func (d *Discovery) check(s *Station, a *Announcement, nic int) Fault {
	fault := func(kind FaultKind, other Station) Fault {
		return Fault{Kind: kind, A: other, B: *s, Size: int(a.Size)}
	}
	if s.Node == d.self.Node {
		return fault(SameNumber, d.self)
	}
	if old, ok := d.heard[s.Node]; ok && !slices.Equal(old.MACs, s.MACs) {
		return fault(SameNumber, old)
	}
	for _, mac := range s.MACs {
		if owner, ok := d.byMAC[mac]; ok && owner != s.Node {
			other := d.self
			if owner != d.self.Node {
				other = d.heard[owner]
			}
			return fault(SameAddress, other)
		}
	}
	if int(a.Size) != d.size {
		return fault(OtherSize, d.self)
	}
	if int(s.Node) >= d.size {
		return fault(OutOfRange, d.self)
	}
	if len(s.MACs) != len(d.self.MACs) || int(a.NIC) != nic {
		return fault(OtherNetwork, d.self)
	}
	return Fault{}
}
