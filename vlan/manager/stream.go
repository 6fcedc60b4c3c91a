package manager

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// maxEvent bounds an event, in bytes: a table of 4,096 destinations takes a quarter of it.
const maxEvent = 1 << 20

// startTimeout bounds the time from a connection to the stream's first event, and maxSilence that
// from one event to the next: a manager that is stopped, or hangs, is lost.
const (
	startTimeout = 5 * time.Second
	maxSilence   = 3 * api.Heartbeat
)

// stream is the manager's answer to a session's start: events, one JSON object on each line, for as
// long as the session lasts.
type stream struct {
	lines *bufio.Scanner
	end   context.CancelFunc // ends the request, and with it the session
}

// next returns the next event. The error is api.ErrUnreachable or api.ErrProtocol.
func (s *stream) next() (*api.SessionEvent, error) {
	if !s.lines.Scan() {
		err := s.lines.Err()
		if err == nil {
			err = io.EOF
		}
		return nil, unreachable(err)
	}
	e := new(api.SessionEvent)
	if err := json.Unmarshal(s.lines.Bytes(), e); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrProtocol, err)
	}
	return e, nil
}

// connect begins the session, or begins it anew with the pairs that the program has asked for, and
// takes in the first event.
func (s *Session) connect(ctx context.Context) (*stream, error) {
	ctx, done := context.WithTimeout(ctx, startTimeout)
	defer done()
	streamCtx, end := context.WithCancel(s.ctx) // the stream outlives ctx
	stop := context.AfterFunc(ctx, end)
	events, err := s.open(streamCtx, end)
	if !stop() {
		err = unreachable(ctx.Err())
	}
	if err != nil {
		end()
		return nil, err
	}
	return events, nil
}

// open asks for a stream, which ends with ctx, and takes in its first event.
func (s *Session) open(ctx context.Context, end context.CancelFunc) (*stream, error) {
	s.mu.Lock()
	start := &api.SessionStart{Session: s.id, Program: s.dialer.Program, Pairs: slices.Collect(maps.Values(s.pairs))}
	s.mu.Unlock()
	w, err := s.client.send(ctx, http.MethodPost, "/v1/sessions", 0, start) //nolint:bodyclose // ctx ends it
	if err != nil {
		return nil, err
	}
	events := &stream{bufio.NewScanner(w.Body), end}
	events.lines.Buffer(make([]byte, 4<<10), maxEvent)
	first, err := events.next()
	if err != nil {
		return nil, err
	}
	return events, s.join(first)
}

// join notes that the session is connected, and takes the first event in: both at once, as a
// manager without a state file counts its versions anew, and the one before would seem to be later.
func (s *Session) join(first *api.SessionEvent) error {
	s.mu.Lock()
	if first.MAC != nil {
		s.self = *first.MAC
	}
	s.lost = nil
	s.streams++
	s.renew()
	s.ack = 0
	clear(s.dropped)
	err := s.takeIn(first)
	s.mu.Unlock()
	return s.taken(first, err)
}

// renew ends the wait for what was asked for in the stream before. The caller holds mu.
func (s *Session) renew() {
	if s.expire != nil {
		s.expire()
	}
	s.during, s.expire = context.WithCancel(s.ctx)
}

// streamLoop takes in what the manager tells, and connects again when it is lost, until Close.
func (s *Session) streamLoop(events *stream) {
	for {
		err := s.listen(events)
		events.end()
		s.mu.Lock()
		s.lost = err
		s.moved.Broadcast()
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			return
		}
		s.event(Event{Kind: EventLost, Err: err})
		if events = s.reconnect(); events == nil {
			return
		}
		s.event(Event{Kind: EventBack})
	}
}

// listen takes events in until the stream ends, and returns why it did.
func (s *Session) listen(events *stream) error {
	for {
		e, err := s.await(events)
		if err == nil {
			err = s.take(e)
		}
		if err != nil {
			return err
		}
	}
}

// await returns the next event. A stream that is silent for too long ends: so does one whose
// program stood still itself, which loses nothing, as the session connects again.
func (s *Session) await(events *stream) (*api.SessionEvent, error) {
	silent := time.AfterFunc(maxSilence, events.end)
	e, err := events.next()
	if !silent.Stop() && err != nil && s.ctx.Err() == nil {
		err = unreachable(fmt.Errorf("it has said nothing for %v (is it stopped?)", maxSilence))
	}
	return e, err
}

// take takes an event in. The error is api.ErrProtocol: the routes are not those of a table.
func (s *Session) take(e *api.SessionEvent) error {
	s.mu.Lock()
	err := s.takeIn(e)
	s.mu.Unlock()
	return s.taken(e, err)
}

// takeIn takes an event in. The error is the table's. The caller holds mu, and then calls taken.
func (s *Session) takeIn(e *api.SessionEvent) (err error) {
	s.fib.take(e)
	switch {
	case s.drainer == nil:
		err = s.fib.installAll()
	case e.Urgent:
		var dsts []transport.MAC
		for _, r := range e.Routes {
			dsts = append(dsts, r.Dst)
		}
		err = s.fib.install(dsts)
	}
	if e.Ack {
		s.ack = e.Version
	}
	for _, c := range e.Dropped {
		peer, _ := c.Peer(s.self)
		delete(s.pairs, peer)
		s.dropped[peer] = e.Version
		s.stats.Dropped++
	}
	s.moved.Broadcast()
	s.wakeIfDue()
	return err
}

// taken does what an event asks for that was taken in, with that error.
func (s *Session) taken(e *api.SessionEvent, err error) error {
	if len(e.Dropped) > 0 {
		s.event(Event{Kind: EventDropped, Changes: e.Dropped})
	}
	if e.Report != 0 {
		s.running.Go(func() { s.report(s.ctx, e.Report) }) // ends after startTimeout at the latest
	}
	if err != nil {
		return fmt.Errorf("%w: its routes: %w", api.ErrProtocol, err)
	}
	return nil
}

// Pauses before the session connects again: doubled each time, and spread so that a node's programs
// do not come at once.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
)

// reconnect connects again, and returns nil if the session is closed meanwhile.
func (s *Session) reconnect() *stream {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case <-s.ctx.Done():
			return nil
		case <-time.After(pause/2 + rand.N(pause)):
		}
		events, err := s.connect(s.ctx)
		s.mu.Lock()
		if err == nil {
			s.stats.Reconnects++
			s.mu.Unlock()
			return events
		}
		s.lost = err
		s.expire()
		s.moved.Broadcast() // a request may wait for a stream that has begun and could not be taken in
		s.mu.Unlock()
	}
}
