package mux

import (
	"cmp"

	"github.com/rawlane/rawlane/internal/list"
)

// Listener takes the streams to a service.
type Listener struct {
	// Owner is the driver's.
	Owner any

	m       *Mux
	service string
	backlog int
	pending int               // streams that were not handed out
	queue   list.List[Stream] // of these, those that were accepted on the wire
	closed  bool
}

// Listen has streams to a service be accepted; as many as backlog wait for Accept. Errors:
// ErrInUse.
func (m *Mux) Listen(service string, backlog int) (*Listener, error) {
	if m.listeners[service] != nil {
		return nil, ErrInUse
	}
	l := &Listener{m: m, service: service, backlog: cmp.Or(backlog, DefaultBacklog)}
	m.listeners[service] = l
	return l, nil
}

// Service returns the service's name.
func (l *Listener) Service() string { return l.service }

// Closed reports whether Close was called.
func (l *Listener) Closed() bool { return l.closed }

// Accept returns the stream that has waited longest, or nil.
func (l *Listener) Accept() *Stream {
	s := l.queue.PopFront()
	if s != nil {
		l.pending--
	}
	return s
}

// Close ends the listener. Streams that wait for Accept are reset.
func (l *Listener) Close() {
	if l.closed {
		return
	}
	l.closed = true
	delete(l.m.listeners, l.service)
	for s := l.queue.PopFront(); s != nil; s = l.queue.PopFront() {
		s.owe(owesReset)
		s.resetReason = ListenerGone
		s.CloseRead()
		s.end()
	}
}

// accepted hands a stream out whose Accept was sent.
func (l *Listener) accepted(s *Stream, out []Event) []Event {
	s.state = Opened
	if l.closed {
		s.owe(owesReset)
		s.resetReason = ListenerGone
		s.end()
		return out
	}
	l.queue.PushBack(&s.wait, s)
	return append(out, Event{Kind: Acceptable, Listener: l})
}

// forget takes a stream out of the queue that has failed before it was handed out.
func (l *Listener) forget(s *Stream) {
	l.queue.Remove(&s.wait)
	l.pending--
}
