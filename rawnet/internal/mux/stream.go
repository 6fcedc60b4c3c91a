package mux

import (
	"math"

	"github.com/rawlane/rawlane/internal/list"
)

// State of a stream.
type State uint8

// The states.
const (
	Opening State = iota // dialed, and not answered
	Pending              // it waits for an Accept
	Opened               // bytes may go both ways
	Ended                // the peer knows it no more: what has arrived can be read
)

// String names s.
func (s State) String() string {
	return [...]string{"opening", "pending", "open", "ended", "?"}[min(s, Ended+1)]
}

// name of a stream on the wire and in this node's table.
type name struct {
	node   uint16 // the other end
	dialed bool   // by this node
	number uint64
}

// Stream is one end of a stream.
type Stream struct {
	// Owner is the driver's.
	Owner any

	m        *Mux
	name     name
	state    State
	reason   Reason // of an end that neither side has asked for
	cause    error  // of PeerDown
	listener *Listener
	receiver

	sent       uint64 // bytes
	sendLimit  uint64 // the peer accepts bytes before this offset
	sendClosed bool   // no more is sent
	unread     bool   // the peer reads no more

	owes   owed
	owing  list.Node[Stream] // in peer.owing
	member list.Node[Stream] // in peer.streams
	wait   list.Node[Stream] // in Listener.queue
}

// Node returns the node of the other end.
func (s *Stream) Node() uint16 { return s.name.node }

// Number returns the stream's number, which its dialer has given it.
func (s *Stream) Number() uint64 { return s.name.number }

// Service returns the name under which the stream was accepted; "" if this end has dialed.
func (s *Stream) Service() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.service
}

// State returns the stream's state.
func (s *Stream) State() State { return s.state }

// Failure returns why the stream has ended without either side asking for it: 0 if it has not.
// cause is that of PeerDown.
func (s *Stream) Failure() (reason Reason, cause error) { return s.reason, s.cause }

// Credit returns how many bytes may be sent now.
func (s *Stream) Credit() int {
	if s.state != Opened || s.sendClosed {
		return 0
	}
	return int(min(s.sendLimit-s.sent, math.MaxInt)) // any number may come as the limit
}

// Owes reports whether control records of the stream are to be sent.
func (s *Stream) Owes() bool { return s.owes != 0 }

// Broken reports whether the other end reads no more.
func (s *Stream) Broken() bool { return s.unread }

// Sent takes n bytes off the credit.
func (s *Stream) Sent(n int) { s.sent += uint64(n) }

// Unsent gives n bytes back that were not sent after all.
func (s *Stream) Unsent(n int) { s.sent -= uint64(n) }

// AppendHeader appends the header of a Data record to b; the data follows it.
func (s *Stream) AppendHeader(b []byte) []byte {
	r := Record{Kind: Data, Dialer: s.name.dialed, Stream: s.name.number}
	return r.Append(b)
}

// AppendOpen appends the record that asks for the stream.
func (s *Stream) AppendOpen(b []byte, service string) []byte {
	r := Record{Kind: Open, Dialer: true, Stream: s.name.number, Limit: s.limit, Body: []byte(service)}
	return r.Append(b)
}

// CloseWrite ends the sending half, behind what was sent. The caller sends nothing more.
func (s *Stream) CloseWrite() {
	if s.sendClosed || s.state != Opened {
		return
	}
	s.sendClosed = true
	s.owe(owesFin)
	if s.finished {
		s.end()
	}
}

// CloseRead drops what has arrived, and what will.
func (s *Stream) CloseRead() {
	s.discarding = true
	s.take(len(s.buffered()))
}

// Close ends both halves, behind what was sent. The caller sends nothing more.
func (s *Stream) Close() {
	switch s.state {
	case Opening:
		s.owe(owesReset)
		s.resetReason = GivenUp
	case Opened:
		s.owes &^= owesFin // Close says it, too
		s.owe(owesClose)
	}
	s.sendClosed = true
	s.CloseRead()
	s.owes &^= owesWindow
	s.end()
}

// Reset is Close that has the other end hear that the stream was cut off.
func (s *Stream) Reset() {
	open := s.state == Opened
	if s.Close(); open {
		s.resetReason = Aborted
		s.owe(owesReset)
	}
}

// CutOff fails the stream at both ends: nobody knows how much of what was being sent has gone.
func (s *Stream) CutOff(out []Event) []Event {
	if s.state != Opened {
		return out
	}
	s.resetReason = Aborted
	s.owe(owesReset)
	return s.fail(Aborted, nil, out)
}

// Abort ends a stream whose Open was not sent.
func (s *Stream) Abort() { s.end() }

// end takes the stream out of the table: nothing more comes.
func (s *Stream) end() {
	if s.state == Ended {
		return
	}
	if s.state == Pending {
		s.listener.pending--
	}
	s.state = Ended
	s.m.remove(s)
}

// fail ends the stream with a reason.
func (s *Stream) fail(reason Reason, cause error, out []Event) []Event {
	s.reason, s.cause = reason, cause
	if s.wait.In() {
		s.listener.forget(s)
	}
	s.end()
	return append(out, Event{Kind: Failed, Stream: s})
}

// violate resets the stream, as its peer has sent what it may not.
func (s *Stream) violate(out []Event) []Event {
	s.m.counters.Violations++
	s.resetReason = Violation
	s.owe(owesReset)
	return s.fail(Violation, nil, out)
}
