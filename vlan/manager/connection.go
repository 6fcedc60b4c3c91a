package manager

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// connection is one life of a session's connection.
type connection struct {
	net.Conn
	lines *bufio.Scanner
}

// EventKind says what has happened to a session.
type EventKind int

// What happens to sessions.
const (
	// EventLost: the manager is lost. The table stays as it is; the session tries to connect again.
	EventLost EventKind = iota + 1
	// EventBack: the manager is back, and has heard again what the program asks for.
	EventBack
	// EventDropped: the manager could not keep Changes of the program's: a new plan has no such node or VID, or the operator has taken them
	// back.
	EventDropped
	// EventUnfenced: a change that others had made is in the table though its fence failed: messages may have overtaken each other.
	EventUnfenced
)

// String names the kind.
func (k EventKind) String() string {
	switch k {
	case EventLost:
		return "lost"
	case EventBack:
		return "back"
	case EventDropped:
		return "dropped"
	case EventUnfenced:
		return "unfenced"
	}
	return fmt.Sprintf("EventKind(%d)", int(k))
}

// Event is something that has happened to a session.
type Event struct {
	Kind    EventKind
	Err     error    // of EventLost and EventUnfenced
	Changes []Change // of EventDropped
}

func (s *Session) event(e Event) {
	if s.dialer.OnEvent != nil {
		s.dialer.OnEvent(e)
	}
}

// connect connects, says who we are and what we had asked for, and takes the table in.
func (s *Session) connect(ctx context.Context) error {
	conn, err := s.addr.dial(ctx, s.dialer.TLS)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends what waits
	m, c, err := s.begin(conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close() // the first error is the one to report
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrUnreachable, ctx.Err())
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(ErrClosed, conn.Close())
	}
	s.conn, s.lost = c, nil
	if m.MAC != nil {
		s.self = *m.MAC
	}
	s.take(m)
	return nil
}

// begin upgrades a connection and exchanges the first lines.
func (s *Session) begin(conn net.Conn) (*fromManager, *connection, error) {
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return nil, nil, err
	}
	reader := bufio.NewReader(conn)
	if err := upgrade(conn, reader); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	pairs := slices.Collect(maps.Values(s.claims))
	s.mu.Unlock()
	if err := writeLine(conn, &fromProgram{Start: &start{Session: s.id, Program: s.dialer.Program, Pairs: pairs}}); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	c := &connection{conn, newLines(reader)}
	m, err := c.next()
	if err != nil {
		return nil, nil, err
	}
	if m.Error != nil {
		return nil, nil, m.Error
	}
	return m, c, conn.SetDeadline(time.Time{})
}

// upgrade makes a session's connection of an HTTP connection.
func upgrade(conn net.Conn, reader *bufio.Reader) error {
	want := fmt.Sprintf("%s/%d", upgradeName, Protocol)
	_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: manager\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", sessionPath, want)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		return fmt.Errorf("%w: it does not answer as HTTP: %w", ErrProtocol, err)
	}
	if answer.StatusCode == http.StatusSwitchingProtocols && answer.Header.Get("Upgrade") == want {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	b, _ := io.ReadAll(io.LimitReader(answer.Body, MaxLine)) // what cannot be read is not a refusal
	err = understand(answer.StatusCode, b, nil)
	if speaks := answer.Header.Get("Upgrade"); speaks != "" {
		return fmt.Errorf("%w: it speaks %s, and this program %s (use programs and managers of one release)", ErrProtocol, speaks, want)
	}
	if errors.Is(err, ErrRefused) && answer.StatusCode != http.StatusNotFound {
		return err
	}
	return fmt.Errorf("%w: it knows no sessions, HTTP status %d (want a rawlane manager that speaks %s)", ErrProtocol, answer.StatusCode, want)
}

// next returns the next line of the manager's.
func (c *connection) next() (*fromManager, error) {
	if !c.lines.Scan() {
		err := c.lines.Err()
		if err == nil {
			err = io.EOF
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	m := new(fromManager)
	if err := json.Unmarshal(c.lines.Bytes(), m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return m, nil
}

// How long the session waits before it tries again: doubled each time, and spread so that a node's programs do not come at once.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
)

// run takes in what the manager says, and connects again when it is lost, until Close.
func (s *Session) run() {
	defer s.running.Done()
	for {
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		err := s.listen(conn)
		_ = conn.Close() // it may be closed already
		if s.lose(err) {
			return
		}
		s.event(Event{Kind: EventLost, Err: err})
		if !s.reconnect() {
			return
		}
		s.event(Event{Kind: EventBack})
	}
}

// reconnect connects again, and returns false if the session is closed meanwhile.
func (s *Session) reconnect() bool {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(pause/2 + rand.N(pause)):
		}
		ctx, cancel := context.WithTimeout(s.ctx, startTimeout)
		err := s.connect(ctx)
		cancel()
		s.mu.Lock()
		if err == nil {
			s.stats.Reconnects++
			s.mu.Unlock()
			return true
		}
		s.lost = err
		s.mu.Unlock()
	}
}

// lose fails all calls, and reports whether the session is closed.
func (s *Session) lose(err error) (closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.lost = nil, err
	if s.closed {
		err = ErrClosed
	}
	for id, c := range s.calls {
		c.err = fmt.Errorf("manager %v: %w", s.addr, err)
		close(c.done)
		delete(s.calls, id)
	}
	return s.closed
}

// listen takes lines in until the connection ends, and returns why it did: ErrUnreachable, ErrProtocol or a refusal.
func (s *Session) listen(c *connection) error {
	s.mu.Lock()
	ack := s.acknowledge() // of what connect has taken in
	s.mu.Unlock()
	for {
		if ack != 0 {
			if err := s.write(c, &fromProgram{Applied: ack}); err != nil {
				return unreachable(err)
			}
		}
		m, err := c.next()
		if err != nil {
			return err
		}
		if m.Report != 0 {
			if err := s.tell(c, m.Report, sentJSON(s.table.Counts())); err != nil {
				return unreachable(err)
			}
		}
		s.mu.Lock()
		call := s.take(m)
		ack = s.acknowledge()
		s.mu.Unlock()
		if len(m.Dropped) > 0 {
			s.event(Event{Kind: EventDropped, Changes: m.Dropped})
		}
		if call != nil {
			close(call.done)
		} else if m.Error != nil {
			return m.Error
		}
	}
}

// take takes a line in: its routes into the table or, with a fencer, into what follow does; and its answer into the call that
// waits for it, which is returned. The caller holds mu.
func (s *Session) take(m *fromManager) *call {
	c := s.calls[m.ID]
	delete(s.calls, m.ID)
	if m.Error == nil {
		s.takeRoutes(m, c)
	}
	for _, d := range m.Dropped {
		delete(s.claims, pairKey(d))
		s.stats.Dropped++
	}
	if c == nil {
		return nil
	}
	if m.Error != nil {
		c.err = m.Error
		return c
	}
	if c.reset {
		clear(s.claims)
	}
	for _, change := range c.changes {
		s.claims[pairKey(change)] = claimed{Change: change, Since: m.Version}
	}
	return c
}

// pairKey is the same for both orders of a pair.
func pairKey(c Change) [2]transport.MAC {
	if c.A.Compare(c.B) > 0 {
		return [2]transport.MAC{c.B, c.A}
	}
	return [2]transport.MAC{c.A, c.B}
}

// takeRoutes takes a line's routes in. The caller holds mu.
func (s *Session) takeRoutes(m *fromManager, c *call) {
	s.version = m.Version
	if m.Ack {
		s.ack = m.Version
	}
	routes := make([]vlan.Route, len(m.Routes))
	for i, r := range m.Routes {
		routes[i] = r.route()
	}
	if s.fencer != nil {
		s.takeFenced(m, c, routes)
		return
	}
	if m.Full {
		clear(s.want)
	}
	for _, r := range routes {
		s.want[r.Dst] = r
	}
	if m.Full {
		_ = s.table.Replace(routes) // the manager's routes are valid; if they were not, the old ones stay
	} else if len(routes) > 0 {
		_ = s.table.Set(routes...) // likewise
	}
}

// acknowledge returns the version to say applied of; 0 if there is none, or not yet. The caller holds mu.
func (s *Session) acknowledge() (version uint64) {
	if len(s.dirty) == 0 && !s.whole {
		version, s.ack = s.ack, 0
	}
	return version
}

// report reports the counters while they change.
func (s *Session) report() {
	defer s.running.Done()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	var told []sent
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		counts := sentJSON(s.table.Counts())
		if conn == nil || slices.Equal(counts, told) {
			continue
		}
		if s.tell(conn, 0, counts) == nil {
			told = counts
		}
	}
}

// tell writes a report.
func (s *Session) tell(conn net.Conn, report uint64, counts []sent) error {
	if report == 0 && len(counts) == 0 {
		return nil
	}
	return s.write(conn, reportLines(report, counts)...)
}
