package manager

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/claims"
)

// subscriber is the manager's end of a session.
//
// What it has not been told yet is kept by destination, so that a program which reads slowly costs no more than one table, and
// gets what is in force when it reads on.
type subscriber struct {
	s       *Server
	conn    net.Conn
	id      string
	program string
	wake    chan struct{} // holds one token: there is something to tell
	partial []vlan.Sent   // of a report whose end has not come; listen's alone

	// turn is held while a line is made and written, so that lines leave in the order of what they tell. Taken before Server.mu.
	turn sync.Mutex

	// Guarded by Server.mu:
	owner    claims.Owner
	full     bool // the whole table is to be told
	pending  map[transport.MAC]vlan.Route
	dropped  []Change
	ask      uint64 // the report to ask for; 0: none
	due      uint64 // the version that it is to say it sends by
	urgent   bool   // among what is to be told is what a failover has forced
	applied  uint64 // the version that the program has said to send by
	reported uint64 // the last report
	counts   []vlan.Sent
}

func (sub *subscriber) String() string {
	if sub.program == "" {
		return fmt.Sprintf("session %d", sub.owner)
	}
	return fmt.Sprintf("session %d (%s)", sub.owner, sub.program)
}

// note keeps routes to be told. The caller holds Server.mu.
func (sub *subscriber) note(routes []vlan.Route, all bool) {
	sub.full = sub.full || all
	for _, r := range routes {
		sub.pending[r.Dst] = r
	}
}

// ring wakes the goroutine that tells.
func (sub *subscriber) ring() {
	select {
	case sub.wake <- struct{}{}:
	default: // it is woken already
	}
}

// take moves what is to be told into m. The caller holds Server.mu and sub.turn.
func (sub *subscriber) take(m *fromManager) {
	m.Version = sub.s.version
	switch {
	case sub.full:
		m.Full, m.Routes = true, routesJSON(sub.s.book.Routes())
	case len(sub.pending) > 0:
		m.Routes = make([]Route, 0, len(sub.pending))
		for _, r := range sub.pending {
			m.Routes = append(m.Routes, Route{r.Dst, r.Tag.VID, r.Tag.PCP, !r.Tagged})
		}
	}
	m.Dropped, m.Report, m.Ack, m.Urgent = sub.dropped, sub.ask, sub.due > sub.applied, sub.urgent
	sub.full, sub.dropped, sub.ask, sub.urgent = false, nil, 0, false
	clear(sub.pending)
}

// send writes a line; a program that does not read it in time is cut off. The caller holds sub.turn.
func (sub *subscriber) send(m *fromManager) error {
	if err := sub.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return writeLine(sub.conn, m)
}

// tell writes what has changed whenever something has, until the connection is closed.
func (sub *subscriber) tell(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-sub.wake:
		}
		if err := sub.tellNow(); err != nil {
			_ = sub.conn.Close() // which ends the session
			return
		}
	}
}

func (sub *subscriber) tellNow() error {
	sub.turn.Lock()
	defer sub.turn.Unlock()
	var m fromManager
	sub.s.mu.Lock()
	quiet := !sub.full && len(sub.pending) == 0 && len(sub.dropped) == 0 && sub.ask == 0
	if !quiet {
		sub.take(&m)
	}
	sub.s.mu.Unlock()
	if quiet {
		return nil // an answer has told it meanwhile
	}
	return sub.send(&m)
}

// serve hears the program until the connection ends, and then takes its claims back. r has what was read ahead.
func (sub *subscriber) serve(r *bufio.Reader) {
	lines := newLines(r)
	if err := sub.begin(lines); err != nil {
		_ = sub.refuse(0, err) // the connection is closed in any case
		return
	}
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { sub.tell(ended) })
	err := sub.listen(lines)
	sub.end(err)
	close(ended)
	_ = sub.conn.Close() // tell may be writing
	telling.Wait()
}

// begin hears who the program is, gives it back what it had, and answers with the table.
func (sub *subscriber) begin(lines *bufio.Scanner) error {
	if err := sub.conn.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	if !lines.Scan() {
		return badRequest("session: nothing came within %v (want a start line)", startTimeout)
	}
	var m fromProgram
	if err := decodeStrict(lines.Bytes(), &m); err != nil {
		return err
	}
	if m.Start == nil || m.Start.Session == "" || len(m.Start.Session) > 64 {
		return badRequest("session: no start line (want {\"start\":{\"session\":ID,...}}, ID of 1 to 64 bytes)")
	}
	if err := checkText("session: program", m.Start.Program, 256); err != nil {
		return err
	}
	if err := sub.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	sub.id, sub.program = m.Start.Session, m.Start.Program
	sub.turn.Lock()
	defer sub.turn.Unlock()
	answer := fromManager{ID: m.ID}
	if err := sub.join(m.Start.Pairs, &answer); err != nil {
		return err
	}
	sub.s.log.Info("session begins", "session", sub.owner, "program", sub.program, "claims", len(m.Start.Pairs), "dropped", len(answer.Dropped))
	return sub.send(&answer) // if it fails, listen ends at once
}

// join takes the session in, with the claims that it had as far as they can be fulfilled. They lie where they lay among others' claims; without
// a state file versions begin anew, and they come on top.
func (sub *subscriber) join(pairs []claimed, answer *fromManager) error {
	s := sub.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.sessions.add(sub); err != nil {
		return err
	}
	var changed []vlan.Route
	for _, c := range pairs {
		routes, _, err := s.book.Claim(sub.owner, min(c.Since, s.version), []Change{c.Change})
		if err != nil {
			sub.dropped = append(sub.dropped, c.Change)
		}
		changed = append(changed, routes...)
	}
	if len(changed) > 0 {
		s.changed(changed, false, sub, Entry{Act: actSession, By: sub.String(), Reason: "the session is back"})
	}
	sub.full, sub.reported = true, s.sessions.asked
	sub.take(answer)
	answer.MAC, answer.Ack, sub.due = &s.cfg.MAC, true, s.version
	return nil
}

// listen hears the program's lines until the connection ends, and returns why it did.
func (sub *subscriber) listen(lines *bufio.Scanner) error {
	for lines.Scan() {
		var m fromProgram
		err := decodeStrict(lines.Bytes(), &m)
		if err == nil {
			err = sub.handle(&m)
		}
		if err == nil {
			continue
		}
		if err := sub.refuse(m.ID, err); err != nil {
			return err
		}
		if m.ID == 0 {
			return err // it cannot know that this was meant for what it said
		}
	}
	return lines.Err()
}

func (sub *subscriber) handle(m *fromProgram) error {
	switch {
	case m.Set != nil:
		return sub.claim(m)
	case m.Reset:
		return sub.release(m.ID)
	case m.Counts != nil || m.Report != 0:
		return sub.count(m)
	case m.Applied != 0:
		sub.s.mu.Lock()
		sub.applied = max(sub.applied, min(m.Applied, sub.s.version))
		sub.s.move()
		sub.s.mu.Unlock()
		return nil
	}
	return badRequest("session: a line that asks for nothing (want set, reset, applied, report or counts)")
}

// count takes in a report, or a part of one.
func (sub *subscriber) count(m *fromProgram) error {
	if sub.partial = append(sub.partial, sentFrom(m.Counts)...); len(sub.partial) > vlan.MaxCounts {
		sub.partial = nil
		return badRequest("session: more than %d counts (a table cannot have so many)", vlan.MaxCounts)
	}
	if m.More {
		return nil
	}
	sub.s.mu.Lock()
	defer sub.s.mu.Unlock()
	sub.counts, sub.reported, sub.partial = sub.partial, max(sub.reported, m.Report), nil
	sub.s.move()
	return nil
}

// claim carries out a program's change and answers.
func (sub *subscriber) claim(m *fromProgram) error {
	sub.turn.Lock()
	defer sub.turn.Unlock()
	s := sub.s
	answer := fromManager{ID: m.ID}
	s.mu.Lock()
	routes, ignored, err := s.book.Claim(sub.owner, s.version+1, m.Set)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	if len(routes) > 0 {
		s.changed(routes, false, sub, Entry{Act: actSession, By: sub.String()})
	}
	answer.Ignored = ignored
	sub.take(&answer)
	s.mu.Unlock()
	return sub.sendOrHangUp(&answer)
}

// release takes the program's claims back and answers.
func (sub *subscriber) release(id uint64) error {
	sub.turn.Lock()
	defer sub.turn.Unlock()
	s := sub.s
	answer := fromManager{ID: id}
	s.mu.Lock()
	if routes := s.book.Release(sub.owner); len(routes) > 0 {
		s.changed(routes, false, sub, Entry{Act: actSession, By: sub.String(), Reason: "reset by the program"})
	}
	sub.take(&answer)
	s.mu.Unlock()
	return sub.sendOrHangUp(&answer)
}

// sendOrHangUp sends an answer; if that fails the connection is of no use any more, and listen ends.
func (sub *subscriber) sendOrHangUp(m *fromManager) error {
	if err := sub.send(m); err != nil {
		_ = sub.conn.Close()
	}
	return nil
}

// refuse answers with an error.
func (sub *subscriber) refuse(id uint64, err error) error {
	e, _ := refusal(err)
	sub.s.mu.Lock()
	sub.s.tally.refused[e.Code]++
	sub.s.mu.Unlock()
	sub.turn.Lock()
	defer sub.turn.Unlock()
	return sub.send(&fromManager{ID: id, Error: e})
}

// end takes the session out, and its claims back.
func (sub *subscriber) end(err error) {
	s := sub.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.remove(sub)
	if routes := s.book.Release(sub.owner); len(routes) > 0 {
		s.changed(routes, false, nil, Entry{Act: actSession, By: sub.String(), Reason: "the session has ended"})
	}
	s.move()
	s.log.Info("session ends", "session", sub.owner, "program", sub.program, "err", err)
}
