package mux

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rawlane/rawlane/internal/list"
)

// Config of a node's streams.
type Config struct {
	First      uint64 // the number of the first stream that this node dials: random
	Window     int    // receive window of each stream, in bytes; zero is DefaultWindow
	MaxStreams int    // zero is DefaultMaxStreams
}

// Errors of Listen and Dial.
var (
	ErrInUse   = errors.New("service has a listener")
	ErrTooMany = errors.New("too many streams")
)

// Counters of a node's streams. The last four count records.
type Counters struct {
	Dialed     uint64 `json:"dialed"`     // streams
	Accepted   uint64 `json:"accepted"`   // streams that came
	Refused    uint64 `json:"refused"`    // streams that came
	Malformed  uint64 `json:"malformed"`  // they make no sense
	Version    uint64 `json:"version"`    // of another version
	NoStream   uint64 `json:"no_stream"`  // of a stream that there is not, or not any more
	Violations uint64 `json:"violations"` // more than the window, or what the stream's state forbids
}

// Mux is the streams of one node.
type Mux struct {
	cfg       Config
	next      uint64 // number of the next stream that is dialed
	streams   map[name]*Stream
	recent    *Stream // that a record was for last, or nil
	listeners map[string]*Listener
	peers     map[uint16]*peer
	pool      pool
	counters  Counters
	record    Record // that is being handled
}

// peer is another node, or this one.
type peer struct {
	streams list.List[Stream] // in the table
	count   int               // how many these are
	owing   list.List[Stream] // with control records to be sent to it
	answers []Control         // to records of streams that there are not
	last    name              // of the last one of these
}

// EventKind is what has happened to a stream or a listener.
type EventKind uint8

// The kinds of events.
const (
	Readable   EventKind = iota + 1 // bytes have come for a Read that waits, or no more come
	Writable                        // there is credit, or nobody reads any more
	Answered                        // the peer has accepted a stream
	Failed                          // a stream has ended: see Stream.Failure
	Acceptable                      // a stream waits for Accept
)

// Event says what the driver has to tell those that wait.
type Event struct {
	Kind     EventKind
	Stream   *Stream
	Listener *Listener
}

// New makes the streams of a node.
func New(cfg Config) *Mux {
	cfg.Window = max(cmp.Or(cfg.Window, DefaultWindow), MinWindow)
	cfg.MaxStreams = cmp.Or(cfg.MaxStreams, DefaultMaxStreams)
	return &Mux{
		cfg: cfg, next: cfg.First, streams: map[name]*Stream{}, listeners: map[string]*Listener{},
		peers: map[uint16]*peer{},
	}
}

// Counters returns the counters.
func (m *Mux) Counters() Counters { return m.counters }

// Len returns how many streams there are.
func (m *Mux) Len() int { return len(m.streams) }

// All returns all streams, in no order.
func (m *Mux) All() []*Stream { return slices.Collect(maps.Values(m.streams)) }

// Listeners returns all listeners, in no order.
func (m *Mux) Listeners() []*Listener { return slices.Collect(maps.Values(m.listeners)) }

// Streams returns how many streams there are with a node.
func (m *Mux) Streams(node uint16) int {
	if p := m.peers[node]; p != nil {
		return p.count
	}
	return 0
}

// Dial makes a stream. The caller sends what AppendOpen appends, or calls Abort.
func (m *Mux) Dial(node uint16) (*Stream, error) {
	if len(m.streams) >= m.cfg.MaxStreams {
		return nil, fmt.Errorf("%w (%d: close some)", ErrTooMany, m.cfg.MaxStreams)
	}
	s := m.add(name{node: node, dialed: true, number: m.next})
	m.next++
	m.counters.Dialed++
	return s, nil
}

func (m *Mux) add(n name) *Stream {
	s := &Stream{m: m, name: n}
	s.limit = uint64(m.cfg.Window)
	m.streams[n] = s
	p := m.peer(n.node)
	p.streams.PushBack(&s.member, s)
	p.count++
	return s
}

func (m *Mux) peer(node uint16) *peer {
	p := m.peers[node]
	if p == nil {
		p = &peer{}
		m.peers[node] = p
	}
	return p
}

func (m *Mux) remove(s *Stream) {
	delete(m.streams, s.name)
	p := m.peer(s.name.node)
	p.streams.Remove(&s.member)
	p.count--
	if m.recent == s {
		m.recent = nil
	}
}

// lookup returns a stream, or nil. Many records in a row are for the same.
func (m *Mux) lookup(n name) *Stream {
	if s := m.recent; s != nil && s.name == n {
		return s
	}
	s := m.streams[n]
	if s != nil {
		m.recent = s
	}
	return s
}

// Handle takes a record of a node.
func (m *Mux) Handle(from uint16, rec []byte, out []Event) []Event {
	r := &m.record
	err := r.Parse(rec)
	n := name{from, !r.Dialer, r.Stream}
	switch {
	case errors.Is(err, ErrVersion):
		m.counters.Version++
		m.answer(n, Refuse, WrongVersion)
		return out
	case err != nil:
		m.counters.Malformed++
		return out
	}
	s := m.lookup(n)
	if r.Kind == Open {
		return m.open(n, s, r, out)
	}
	if s == nil {
		m.counters.NoStream++
		if r.Kind == Data || r.Kind == Fin || r.Kind == Accept {
			m.answer(n, Reset, NoSuchStream)
		}
		return out
	}
	return s.handle(r, out)
}

// open takes an Open; s is the stream of that name, which should be nil.
func (m *Mux) open(n name, s *Stream, r *Record, out []Event) []Event {
	if s != nil || !r.Dialer {
		m.counters.Violations++
		return out
	}
	l := m.listeners[string(r.Body)]
	reason := Reason(0)
	switch {
	case l == nil:
		reason = NoListener
	case l.pending >= l.backlog:
		reason = BacklogFull
	case len(m.streams) >= m.cfg.MaxStreams:
		reason = TooMany
	}
	if reason != 0 {
		m.counters.Refused++
		m.answer(n, Refuse, reason)
		return out
	}
	s = m.add(n)
	s.state, s.listener, s.sendLimit = Pending, l, r.Limit
	l.pending++
	s.owe(owesAccept)
	return out
}

// handle takes a record of a stream.
func (s *Stream) handle(r *Record, out []Event) []Event {
	if r.Kind == Refuse || r.Kind == Reset {
		return s.fail(r.Reason, nil, out)
	}
	opening := s.state == Opening
	if opening != (r.Kind == Accept) || s.finished && r.Kind != Window && r.Kind != Close {
		return s.violate(out)
	}
	switch r.Kind {
	case Accept:
		s.state, s.sendLimit = Opened, r.Limit
		return append(out, Event{Kind: Answered, Stream: s})
	case Data:
		if s.got+uint64(len(r.Body)) > s.limit {
			return s.violate(out)
		}
		return s.receive(r.Body, out)
	case Window:
		if r.Limit > s.sendLimit {
			s.sendLimit = r.Limit
			out = append(out, Event{Kind: Writable, Stream: s})
		}
	case Fin, Close:
		s.finished = true
		s.unread = r.Kind == Close
		if s.unread || s.sendClosed {
			s.end()
		}
		out = append(out, Event{Kind: Readable, Stream: s})
		if s.unread {
			out = append(out, Event{Kind: Writable, Stream: s})
		}
	}
	return out
}

// Down ends all streams with a node, as it is down.
func (m *Mux) Down(node uint16, cause error, out []Event) []Event {
	p := m.peers[node]
	if p == nil {
		return out
	}
	for s := p.streams.Front(); s != nil; s = p.streams.Front() {
		out = s.fail(PeerDown, cause, out)
	}
	for s := p.owing.PopFront(); s != nil; s = p.owing.PopFront() {
		s.owes = 0
	}
	p.answers = nil
	return out
}
