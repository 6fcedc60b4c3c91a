package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/filelock"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Config of a Server.
type Config struct {
	// MAC is this node's address, by which plans name it.
	MAC transport.MAC
	// Interface is the network interface of GET /v1/nic. It may be empty.
	Interface string
	// State is the file, or a link to it, that keeps the plan across restarts. Empty: it is not
	// kept.
	State string
	// Plan is the first plan of a manager without a state. It may be nil: then programs send
	// untagged until a plan is set.
	Plan *plan.Plan
	// ReadPlan, if not nil, reads the first plan, in place of Plan. Where there is a state, which
	// counts, it is called with hasState for the log alone: a plan that is another one is a
	// warning, and so is an error. It may return nil then, if the plan takes long to read.
	ReadPlan func(hasState bool) (*plan.Plan, error)
	// DiscardState begins anew where the state file is corrupt, and keeps that file aside.
	DiscardState bool
	// KeepOverrides keeps the overrides of a failover beside the state across restarts, too. It is
	// for managers that begin a failover at each start, which takes them up. Without, a restart
	// ends them.
	KeepOverrides bool
	// Program is the manager's own name and version.
	Program string
	// Listen has the addresses that are served from the start on, as by Server.Listen: if one
	// cannot be listened on, New fails, and has written nothing where there was no state.
	Listen []Address
	// Logger receives what happens. Nil: nothing is logged.
	Logger *slog.Logger
}

// Server is a node's manager. It holds the node's plan and what lies over it, tells the node's
// programs at once of each change, and answers over HTTP as docs/manager-api.md describes. All
// methods may be called from any goroutine.
//
// Source: VFREC §4.1 (VFN Network Manager).
type Server struct {
	cfg       Config
	file      stateFile
	lock      *filelock.Lock // of the state file; nil without
	overrides overrideFile
	unsaved   chan struct{} // of capacity 1: holds a token if a write of the state file has failed
	// http serves operators and programs, readOnly the listeners of scrapers.
	http, readOnly *http.Server
	long           chan struct{} // holds a token for each long request under way: see admit
	large          chan struct{} // likewise, for the one with a large body that is carried out; taken before change
	listings       chan struct{} // likewise, for each that lists all paths, or all routes' counters
	// strangersListings are the listings by a read-only address.
	strangersListings chan struct{}
	looking           sync.Mutex // held while all paths are looked at, for a summary; taken before mu
	started           time.Time
	log               *slog.Logger

	served sync.WaitGroup // goroutines: one per listener, and one per request under way, sessions' streams among them

	// change is held while the running configuration changes, its write included. Taken before mu.
	change   sync.Mutex
	prepared *prepared // guarded by change
	aborted  []string  // the latest aborted changes' ids, the oldest first; guarded by change

	// mu guards what follows.
	mu          sync.Mutex
	rib         *rib.RIB
	state       state         // the state file's content; changed with change held, too
	version     api.Version   // of the routes in force
	planVersion api.Version   // of the running configuration's latest change, or of the manager's start
	planID      string        // of the plan in force
	announced   *api.Prepared // the prepared change, for those who read; changed with change held, too
	sessions    sessions
	changes     changeLog
	failover    func() api.Failover // nil: none has begun
	counted                         // for the metrics
	diskError   error               // of the latest write of the state file; nil: it was written
	failedThen  uint64              // writesFailed when the state in force was put in its place
	askedAt     time.Time           // when the programs were asked for their counters last
	told        *api.Counters       // the answer then; nil: there was none
	closed      bool
	moved       *sync.Cond // on mu: a session has reported something or has ended
}

// counted is what a server counts for its metrics.
type counted struct {
	requests         uint64            // that there were, of all kinds
	made             map[string]uint64 // changes, by the log's act
	refused          map[string]uint64 // requests, by api.Error.Code
	handshakesFailed uint64
	leasesExpired    uint64
	writesFailed     uint64 // of the state file
}

// newCounted returns counters that are all there from the start, at 0: a rate needs a first value.
func newCounted() counted {
	c := counted{made: make(map[string]uint64), refused: make(map[string]uint64)}
	for _, act := range acts {
		c.made[act] = 0
	}
	for _, code := range api.Codes() {
		c.refused[code] = 0
	}
	return c
}

// New returns a manager with the state of its file, or else with cfg.Plan. It serves requests on
// the addresses of cfg.Listen, if there are any, and of later calls of Listen. The error is
// ErrCorrupt if the state cannot be understood, and plan.ErrInvalid if the plan cannot be this
// node's.
func New(cfg Config) (*Server, error) {
	if cfg.MAC.IsZero() || cfg.MAC.IsMulticast() {
		return nil, fmt.Errorf("manager: Config.MAC %v: no station's address (want this node's)", cfg.MAC)
	}
	cfg.Program = cmp.Or(cfg.Program, "rawlane")
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if cfg.State, err = followLinks(cfg.State); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	s := &Server{
		cfg: cfg, file: stateFile{path: cfg.State, disk: systemDisk}, started: time.Now(), log: cfg.Logger,
		rib:      rib.New(cfg.MAC),
		sessions: newSessions(), counted: newCounted(),
		long: make(chan struct{}, maxLong), listings: make(chan struct{}, maxLong), large: make(chan struct{}, 1),
		strangersListings: make(chan struct{}, maxLong),
		unsaved:           make(chan struct{}, 1),
	}
	s.file.failed, s.overrides = s.noteDisk, newOverrideFile(&cfg)
	s.moved = sync.NewCond(&s.mu)
	if s.lock, err = s.file.lock(s.log); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	s.http = s.newHTTP(s.requestsOfOperators(), s.requestsOfScrapers())
	s.readOnly = s.newHTTP(s.requestsOfScrapers())
	listeners, err := s.begin()
	if err != nil {
		s.file.unlock(s.lock)
		return nil, fmt.Errorf("manager: %w", err)
	}
	if s.overrides.path != "" {
		s.served.Go(s.keepLoop) // until Close
	}
	if s.file.path != "" {
		s.served.Go(s.saveLoop) // likewise
	}
	for _, l := range listeners {
		_, _ = s.serve(l) // its error is that of a server that is closed
		what := "listening"
		if l.at.ReadOnly {
			what += ", read-only"
		}
		s.log.Info(what, "network", l.at.Network, "address", l.Addr().String(), "tls", l.at.TLS != nil)
	}
	return s, nil
}

// begin takes up the state, and opens what the configuration has to be listened on before it saves
// that this start is another one: a start that fails leaves no state where none was.
func (s *Server) begin() (listeners []*listener, err error) {
	isKept, err := s.restore()
	for i := 0; err == nil && i < len(s.cfg.Listen); i++ {
		var l *listener
		if l, err = s.open(s.cfg.Listen[i]); err == nil {
			listeners = append(listeners, l)
		}
	}
	if err == nil {
		err = s.saveStart(isKept)
	}
	if err != nil {
		for _, l := range listeners {
			_ = l.Close() // the error counts
		}
	}
	return listeners, err
}

// restore takes up the state of the file, or else begins with the plan of the configuration, and
// reports whether there was a state.
func (s *Server) restore() (isKept bool, err error) {
	old, err := s.file.load()
	if errors.Is(err, ErrCorrupt) && s.cfg.DiscardState {
		aside, err := s.file.setAside(time.Now())
		if err != nil {
			return false, err
		}
		s.log.Warn("the state could not be understood; it is kept aside", "file", aside)
	} else if err != nil {
		return false, err
	}
	if old != nil && old.MAC != s.cfg.MAC {
		return false, fmt.Errorf("state %s: is of node %v, and this is %v (give this node another --state)",
			s.cfg.State, old.MAC, s.cfg.MAC)
	}
	isKept = old != nil
	given, err := s.givenPlan(isKept)
	switch {
	case err != nil && old == nil:
		return false, err
	case err != nil:
		s.log.Warn("the plan given cannot be read; the state file has one, and counts",
			"file", s.cfg.State, "plan", old.planID(), "err", err)
	case old == nil:
		old = &state{Format: stateFormat, MAC: s.cfg.MAC}
		if given != nil {
			old.Plan = &api.Plan{Plan: *given}
		}
	case given != nil && api.PlanID(given) != old.planID():
		s.log.Warn("the state file has another plan than the one given, and counts "+
			"(to change it: rawlane route apply)",
			"file", s.cfg.State, "plan", old.planID(), "given", api.PlanID(given))
	}
	if _, err := old.activate(s.rib); err != nil {
		return isKept, err
	}
	s.restoreOverrides()
	old.Start += 1 + s.file.unsavedStarts()
	s.state = *old
	s.version = api.FirstVersion(old.Start)
	s.planVersion, s.planID = s.version, old.planID()
	return isKept, nil
}

// saveStart saves that this start is another one: each has a number of its own, which is in the
// file before the first version of the start is given out. Where that cannot be written, as to a
// full disk, a state that could be read counts all the same, and the start is counted beside the
// file.
func (s *Server) saveStart(isKept bool) error {
	err := s.file.save(&s.state)
	switch {
	case err == nil:
		s.file.savedStart()
		return nil
	case !isKept:
		return fmt.Errorf("%w (the first start needs a state on the disk: make room there, "+
			"or give another --state)", err)
	}
	if notCounted := s.file.countStart(); notCounted != nil {
		return fmt.Errorf("%w, and the start could not be counted: %w (versions would not grow)", err, notCounted)
	}
	s.log.Error("the state was read, and cannot be written; changes are refused until it can be", "err", err)
	return nil
}

// givenPlan returns the plan of the configuration, or nil.
func (s *Server) givenPlan(hasState bool) (*plan.Plan, error) {
	if s.cfg.ReadPlan == nil {
		return s.cfg.Plan, nil
	}
	return s.cfg.ReadPlan(hasState)
}

// noteDisk notes whether the latest write of the state file has failed. A commit's write ends
// behind its programs' answers, and says nothing of one that has failed meanwhile.
func (s *Server) noteDisk(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.diskError = err
		s.writesFailed++
		s.saveLater()
	case s.writesFailed == s.failedThen:
		s.diskError = nil
	}
}

// changed gives the routes in force a new version, tells all sessions of those that have changed,
// and keeps an entry for the log. If routes may be gone, all is set and sessions get the whole
// table. The session that has asked for the change, if one has, need not confirm it. The caller
// holds mu.
func (s *Server) changed(routes []vlan.Route, all bool, asked *session, e api.Entry) {
	s.version++
	e.Time, e.Version, e.Count = time.Now(), s.version, len(routes)
	s.changes.add(e, routes)
	s.made[e.Act]++
	for _, sess := range s.sessions.all {
		for _, r := range routes {
			sess.pending[r.Dst] = r
			if e.Act == actOverride {
				sess.urgent[r.Dst] = true
			}
		}
		sess.next.Full = sess.next.Full || all
		if sess == asked {
			continue // its request tells it
		}
		if len(routes) > 0 || all {
			sess.due = s.version
		}
		sess.wakeUp()
	}
}

// unchanged is the answer to a request that changes no route.
func (s *Server) unchanged() api.Changed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return api.Changed{Schema: api.Schema, Version: s.version}
}

// await returns when done returns true, or when the context ends. The caller holds mu, which is
// free while await waits.
func (s *Server) await(ctx context.Context, done func() bool) {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moved.Broadcast()
	})()
	for !done() && ctx.Err() == nil {
		s.moved.Wait()
	}
}

// Close ends all connections and sessions, whose programs keep the routes that they have, and waits
// for the server's goroutines. Further calls do nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.moved.Broadcast()
	s.mu.Unlock()
	err := errors.Join(s.http.Close(), s.readOnly.Close()) // which ends the context of each request,
	s.endSessions()                                        // but of one that has a byte behind it
	s.change.Lock()
	s.discardPrepared()
	s.change.Unlock()
	close(s.overrides.end)
	s.served.Wait()
	s.file.unlock(s.lock)
	return err
}

// endSessions ends the streams of all sessions.
func (s *Server) endSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions.all {
		sess.end()
	}
}
