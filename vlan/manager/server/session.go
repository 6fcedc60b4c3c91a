package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

// writeTimeout is how long a program may leave events unread that its socket has no room for,
// before its session ends.
const writeTimeout = 5 * time.Second

// maxUnanswered bounds the heartbeats in a row at which a program owes a confirmation of its
// routes, and has made no request since the one before: one that is stopped, whose socket takes
// what it is told, loses its session behind the next. So it has 60 s at least, and its pairs count
// no more; it begins anew by itself when it goes on. Heartbeats are counted, and not time, as what
// a program has sent may be unread where this process has stood still.
const maxUnanswered = 2

// session is the manager's end of a program's session. It lives as long as the request that began
// it: postSession is the only place where one begins and ends.
//
// Changes that the program was not told of yet are kept by destination: a program that reads slowly
// costs one table at most, and gets the routes in force when it reads on.
type session struct {
	id      string
	number  rib.Source
	program string
	from    string        // who has begun it: see callerOf
	wake    chan struct{} // of capacity 1: holds a token if there is something to tell
	end     context.CancelFunc

	// turn is held while an event is made and written, so that events leave in the order of their
	// versions. Taken before Server.mu.
	turn  sync.Mutex
	write func(*api.SessionEvent) error // nil: the stream has ended; guarded by turn

	// Guarded by Server.mu:
	told     api.Version                  // the version of the latest event; 0: there was none
	next     api.SessionEvent             // the next event, as far as it is known yet
	pending  map[transport.MAC]vlan.Route // its routes, unless they are all
	urgent   map[transport.MAC]bool       // those that a failover has changed
	due      api.Version                  // the version that the program is to confirm
	applied  api.Version                  // the version that the program has confirmed
	reported uint64                       // the latest report
	counts   []vlan.Sent
	// unanswered counts heartbeats: see maxUnanswered.
	unanswered int
}

func (sess *session) String() string {
	if sess.program == "" {
		return fmt.Sprintf("session %d", sess.number)
	}
	return fmt.Sprintf("session %d (%s)", sess.number, sess.program)
}

// wakeUp wakes writeLoop.
func (sess *session) wakeUp() {
	select {
	case sess.wake <- struct{}{}:
	default: // it is awake
	}
}

// postSession serves a session: its answer is a stream of events, which ends when the program
// closes the connection, when the same session begins anew on another connection, or with the
// server.
func (s *Server) postSession(w http.ResponseWriter, r *http.Request) {
	var start api.SessionStart
	release, err := s.admit(r)
	if err == nil {
		err = readStart(r, &start)
		release() // a session may last
	}
	out := http.NewResponseController(w)
	if err == nil {
		err = out.SetReadDeadline(time.Time{}) // it would end the request, and with it the stream
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	var sess *session
	if err == nil {
		w.Header().Set("Content-Type", "application/x-ndjson")
		sess, err = s.join(&start, callerOf(r), end, writer(json.NewEncoder(w), out))
	}
	if err != nil {
		s.refuse(w, r, fmt.Errorf("session: %w", err))
		return
	}
	defer s.leave(sess)
	s.writeLoop(ctx, sess)
}

// writer returns a function that writes an event to a stream.
func writer(lines *json.Encoder, out *http.ResponseController) func(*api.SessionEvent) error {
	return func(e *api.SessionEvent) error {
		if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if err := lines.Encode(e); err != nil {
			return err
		}
		return out.Flush()
	}
}

func readStart(r *http.Request, start *api.SessionStart) error {
	body, err := readBody(r)
	if err == nil {
		err = decodeBody(body, start)
	}
	if err == nil {
		err = checkStart(start)
	}
	return err
}

func checkStart(start *api.SessionStart) error {
	if start.Session == "" || len(start.Session) > maxID {
		return badRequest("session %q (want an id of 1 to %d bytes that no other session has)", start.Session, maxID)
	}
	if err := checkText("session", start.Session, maxID); err != nil {
		return err
	}
	return checkText("program", start.Program, 256)
}

// join takes a session in with the pairs that it had, as far as they can be fulfilled. They get
// their old place among the others'; without a state file versions begin anew, and the pairs come
// on top. Events go to write, and end ends the stream.
func (s *Server) join(
	start *api.SessionStart, from string, end context.CancelFunc, write func(*api.SessionEvent) error,
) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, api.ErrClosed
	}
	if old := s.sessions.all[start.Session]; old != nil { // its connection broke, which this end has not noticed
		s.remove(old, "the session has begun anew")
	}
	sess, err := s.sessions.add(start.Session, start.Program)
	if err != nil {
		return nil, err
	}
	sess.from, sess.end, sess.write = from, end, write
	var changed []vlan.Route
	for _, p := range start.Pairs {
		routes, _, err := s.rib.Add(sess.number, uint64(min(p.Since, s.version)), []api.Change{p.Change})
		if err != nil {
			sess.next.Dropped = append(sess.next.Dropped, p.Change)
		}
		changed = append(changed, routes...)
	}
	s.sessionChanged(sess, changed, "the session is back")
	sess.next.Full, sess.due = true, s.version
	s.log.Info("session begins", "session", sess.number, "program", sess.program, "from", from,
		"pairs", len(start.Pairs), "dropped", len(sess.next.Dropped))
	return sess, nil
}

// leave takes a session out when its stream has ended.
func (s *Server) leave(sess *session) {
	sess.turn.Lock()
	sess.write = nil
	sess.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions.all[sess.id] == sess {
		s.remove(sess, "the session has ended")
	}
}

// remove ends a session and withdraws its candidates. The caller holds mu.
func (s *Server) remove(sess *session, why string) {
	sess.end()
	s.sessions.remove(sess)
	s.sessionChanged(sess, s.rib.Withdraw(sess.number), why)
	s.moved.Broadcast()
	s.log.Info("session ends", "session", sess.number, "program", sess.program, "why", why)
}

// sessionChanged is changed for routes that a session's coming, asking or going has changed, if
// there are any. The caller holds mu.
func (s *Server) sessionChanged(sess *session, routes []vlan.Route, why string) {
	if len(routes) > 0 {
		s.changed(routes, false, sess, api.Entry{Act: actSession, By: sess.String(), From: sess.from, Reason: why})
	}
}

// writeLoop writes an event whenever there is something to tell, until ctx ends or the program does
// not read.
//
// A heartbeat finds out that a program is gone where its connection alone does not, as when it has
// sent a byte behind its request.
func (s *Server) writeLoop(ctx context.Context, sess *session) {
	beat := time.NewTicker(api.Heartbeat)
	defer beat.Stop()
	for s.tell(sess, false); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-sess.wake:
			s.tell(sess, false)
		case <-beat.C:
			if s.isSilent(sess) {
				sess.end()
				return
			}
			s.tell(sess, true)
		}
	}
}

// isSilent counts a heartbeat, and reports whether the program has left too many unanswered. One
// that may have a reason not to confirm its routes, as that its table is full, is asked for its
// counters.
func (s *Server) isSilent(sess *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess.due <= sess.applied {
		sess.unanswered = 0
		return false
	}
	if sess.unanswered++; sess.unanswered > maxUnanswered {
		s.log.Warn("a program answers nothing", "session", sess.number, "program", sess.program)
		return true
	}
	sess.next.Report = max(s.sessions.asked, 1)
	return false
}

// tell writes what the session has not been told yet. If the program does not read it, the session
// ends. A request of the session's own calls it before its answer, so that the program finds both
// in one look. With always it writes an event though there is nothing new.
func (s *Server) tell(sess *session, always bool) {
	sess.turn.Lock()
	defer sess.turn.Unlock()
	if sess.write == nil {
		return
	}
	for _, e := range s.drain(sess, always) {
		if sess.write(e) != nil {
			sess.end()
			return
		}
	}
}

// drain returns the events that tell the session all that it has not been told yet: none if that is
// nothing, unless always is set, and two if some routes are urgent and others are not.
func (s *Server) drain(sess *session, always bool) []*api.SessionEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := sess.next
	if !always && sess.told == s.version && !e.Full && len(e.Dropped) == 0 && e.Report == 0 {
		return nil
	}
	e.Version, e.Ack = s.version, sess.due > max(sess.applied, sess.told)
	if sess.told == 0 {
		e.MAC = &s.cfg.MAC
	}
	if e.Full {
		e.Routes = api.RoutesOf(s.rib.Routes())
	} else {
		for _, r := range sess.pending {
			e.Routes = append(e.Routes, api.RouteOf(r))
		}
	}
	events := parted(&e, sess.urgent, sess.told)
	sess.told, sess.next = s.version, api.SessionEvent{}
	clear(sess.pending)
	clear(sess.urgent)
	return events
}

// parted has urgent routes be told in an event of their own, if an event has others, too: programs
// do not drain them. It comes first, with the version that was told before, as the other one
// completes the new version; but a session's first event is that of all routes.
func parted(e *api.SessionEvent, urgent map[transport.MAC]bool, told api.Version) []*api.SessionEvent {
	first := &api.SessionEvent{Version: told, Urgent: true}
	var others []api.Route
	for _, r := range e.Routes {
		if urgent[r.Dst] {
			first.Routes = append(first.Routes, r)
		} else {
			others = append(others, r)
		}
	}
	if e.Urgent = len(first.Routes) > 0 && len(others) == 0; e.Urgent || len(first.Routes) == 0 {
		return []*api.SessionEvent{e}
	}
	if told == 0 {
		first.Version = e.Version
		return []*api.SessionEvent{e, first}
	}
	if !e.Full {
		e.Routes = others
	}
	return []*api.SessionEvent{first, e}
}

// ofSession makes a handler of f, which does something for the session of the request's path, with
// mu held. It fills in the version of f's answer, and tells the program before it answers.
func ofSession[Q any](s *Server, act string, f func(*session, *Q) (api.Changed, error)) http.Handler {
	return endpoint(s, act, func(r *http.Request, q *Q) (any, error) {
		sess, answer, err := func() (sess *session, answer api.Changed, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if sess = s.sessions.all[r.PathValue("id")]; sess == nil {
				return nil, answer, fmt.Errorf("%w (begin one: POST /v1/sessions)", api.ErrNoSession)
			}
			sess.unanswered = 0
			answer, err = f(sess, q)
			answer.Schema, answer.Version = api.Schema, s.version
			return sess, answer, err
		}()
		if err == nil {
			s.tell(sess, false)
		}
		return answer, err
	})
}

// sessionPairs is the body of PATCH /v1/sessions/ID/pairs.
type sessionPairs struct {
	Pairs []api.Change `json:"pairs"`
}

// patchSession adds to what a program asks for. The version of the answer is its place among what
// others ask for, so that it has one of its own also where it lies below an override, or asks for
// the VID in force, and no route changes. A pair that was taken back and that the program has not
// been told of yet is the program's again: told with this version or a later one, it would seem to
// be gone.
func (s *Server) patchSession(sess *session, q *sessionPairs) (api.Changed, error) {
	if len(q.Pairs) == 0 {
		return api.Changed{}, badRequest("no pairs (want {\"pairs\":[{\"a\":MAC,\"b\":MAC,\"vid\":N},...]})")
	}
	routes, ignored, err := s.rib.Add(sess.number, uint64(s.version)+1, q.Pairs)
	s.sessionChanged(sess, routes, "")
	if err != nil {
		return api.Changed{}, err
	}
	if len(routes) == 0 && ignored < len(q.Pairs) {
		s.version++
	}
	for _, c := range q.Pairs {
		if peer, own := c.Peer(s.cfg.MAC); own {
			sess.next.Dropped = slices.DeleteFunc(sess.next.Dropped, func(d api.Change) bool { return d.B == peer })
		}
	}
	return api.Changed{Routes: len(routes), Ignored: ignored}, nil
}

// resetSession takes back all that a program asks for.
func (s *Server) resetSession(sess *session, _ *struct{}) (api.Changed, error) {
	routes := s.rib.Withdraw(sess.number)
	s.sessionChanged(sess, routes, "reset by the program")
	return api.Changed{Routes: len(routes)}, nil
}

// postApplied notes the version that a program sends by.
func (s *Server) postApplied(sess *session, q *api.SessionApplied) (answer api.Changed, err error) {
	sess.applied = max(sess.applied, min(q.Version, s.version))
	s.moved.Broadcast()
	return answer, nil
}

// postCounters takes a program's counters in.
func (s *Server) postCounters(sess *session, q *api.SessionReport) (answer api.Changed, err error) {
	if len(q.Counts) > vlan.MaxCounts {
		return answer, badRequest("%d counts (want at most %d: no table has more)", len(q.Counts), vlan.MaxCounts)
	}
	if err := s.sessions.report(sess, q.Counts); err != nil {
		return answer, err
	}
	sess.reported = max(sess.reported, min(q.Report, s.sessions.asked))
	s.moved.Broadcast()
	return answer, nil
}
