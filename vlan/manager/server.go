package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/claims"

	"github.com/rawlane/rawlane/vlan/plan"
)

// Config of a Server.
type Config struct {
	// MAC is this node's address, by which plans name it.
	MAC transport.MAC
	// Interface is the network interface that GET /v1/nic tells of. It may be empty.
	Interface string
	// State is the file that keeps the plan across restarts. Empty: it is not kept.
	State string
	// Plan is what a manager without a state begins with. It may be nil: then programs send untagged until a plan is set.
	Plan *plan.Plan
	// DiscardState begins anew where the state file cannot be understood, which is kept aside.
	DiscardState bool
	// Program is what the manager calls itself: a name and a version.
	Program string
	// Logger is told of what happens. Nil: nobody is.
	Logger *slog.Logger
}

// Server is a node's manager: it holds the node's plan and what is wished for over it, tells the node's programs at once of
// what has changed, and answers over HTTP as docs/manager-api.md describes. All methods may be called from any goroutine.
//
// Source: VFREC §4.1 (VFN Network Manager).
type Server struct {
	cfg     Config
	file    stateFile
	lock    *os.File // of the state file; nil without
	http    *http.Server
	started time.Time
	log     *slog.Logger

	served sync.WaitGroup // goroutines: one per listener, one per request that is being answered, two per session

	// change is held by whoever changes the setting, while it is written. Taken before mu.
	change   sync.Mutex
	prepared *prepared // guarded by change

	// mu guards what follows. Taken after subscriber.turn.
	mu          sync.Mutex
	book        *claims.Book
	state       state  // what the file says
	version     uint64 // of the routes in force
	planVersion uint64 // at which the setting changed last, or the manager started
	planID      string // of the plan in force: see PlanID
	sessions    sessions
	journal     journal
	tally       tally
	closed      bool
	moved       chan struct{} // closed, and made anew, when a session has said something or is gone
}

// NewServer returns a manager with the state that it had, or else with cfg.Plan. It answers nobody yet: see Listen. The error is
// ErrCorrupt if the state cannot be understood, and plan.ErrInvalid if the plan cannot be this node's.
func NewServer(cfg Config) (*Server, error) {
	if cfg.MAC.IsZero() || cfg.MAC.IsMulticast() {
		return nil, fmt.Errorf("manager: Config.MAC %v: no station's address (want this node's)", cfg.MAC)
	}
	if cfg.Program == "" {
		cfg.Program = "rawlane"
	}
	s := &Server{cfg: cfg, file: stateFile{path: cfg.State}, started: time.Now(), log: cfg.Logger, book: claims.New(cfg.MAC), moved: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.sessions.init()
	s.tally = tally{changes: make(map[string]uint64), refused: make(map[string]uint64)}
	var err error
	if s.lock, err = s.file.lock(); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	if err := s.restore(); err != nil {
		s.unlock()
		return nil, fmt.Errorf("manager: %w", err)
	}
	s.http = s.newHTTP()
	return s, nil
}

func (s *Server) unlock() {
	if s.lock != nil {
		_ = s.lock.Close() // nothing was written to it
	}
}

// versionsPerStart is how many versions a start reserves: the file is written before more are given out, so that versions grow
// across restarts though most changes are not written.
const versionsPerStart = 1_000_000

// restore takes up the state of the file, or else begins with the plan of the configuration.
func (s *Server) restore() error {
	old, err := s.file.load()
	if errors.Is(err, ErrCorrupt) && s.cfg.DiscardState {
		aside, err := s.file.setAside(time.Now())
		if err != nil {
			return err
		}
		s.log.Warn("the state could not be understood; it is kept aside", "file", aside)
	} else if err != nil {
		return err
	}
	if old != nil && old.MAC != s.cfg.MAC {
		return fmt.Errorf("state %s: is of node %v, and this is %v (give this node another --state)", s.cfg.State, old.MAC, s.cfg.MAC)
	}
	if old == nil {
		old = &state{Format: stateFormat, MAC: s.cfg.MAC}
		if s.cfg.Plan != nil {
			old.Plan = &Plan{*s.cfg.Plan}
		}
	}
	if _, err := old.apply(s.book); err != nil {
		return err
	}
	s.state = *old
	s.version = old.VersionLimit + 1
	s.state.VersionLimit = s.version + versionsPerStart
	s.planVersion, s.planID = s.version, s.state.planID()
	return s.save(&s.state)
}

// save writes a state to the file, in all steps.
func (s *Server) save(st *state) error {
	if err := s.file.stage(st); err != nil {
		return err
	}
	if err := s.file.publish(); err != nil {
		return err
	}
	return s.file.settle()
}

// reserve writes the file anew if the versions that it reserves are running out. The caller holds change.
func (s *Server) reserve() error {
	s.mu.Lock()
	st, low := s.state, s.version+versionsPerStart/2 > s.state.VersionLimit
	s.mu.Unlock()
	if !low {
		return nil
	}
	st.VersionLimit += versionsPerStart
	if err := s.save(&st); err != nil {
		return err
	}
	s.mu.Lock()
	s.state.VersionLimit = st.VersionLimit
	s.mu.Unlock()
	return nil
}

// changed gives the routes in force a new version, tells all sessions but one of those that have changed, and keeps an entry
// for the log. All is set where routes may be gone: then sessions get the whole table. The caller holds mu.
func (s *Server) changed(routes []vlan.Route, all bool, but *subscriber, e Entry) {
	s.version++
	e.Time, e.Version, e.Count = time.Now(), s.version, len(routes)
	s.journal.add(e, routes)
	s.tally.changes[e.Act]++
	for sub := range s.sessions.all {
		if len(routes) == 0 && !all {
			continue
		}
		sub.note(routes, all)
		sub.urgent = sub.urgent || e.Act == actForce
		if sub != but {
			sub.due = s.version
			sub.ring()
		}
	}
	if s.version+versionsPerStart/4 > s.state.VersionLimit && !s.sessions.reserving {
		s.sessions.reserving = true
		s.served.Go(s.reserveLater) // ends by itself
	}
}

// reserveLater writes the file so that sessions' changes need not wait for it.
func (s *Server) reserveLater() {
	s.change.Lock()
	defer s.change.Unlock()
	if err := s.reserve(); err != nil {
		s.log.Error("cannot reserve versions", "err", err)
	}
	s.mu.Lock()
	s.sessions.reserving = false
	s.mu.Unlock()
}

// move wakes those who wait for what sessions say. The caller holds mu.
func (s *Server) move() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// await returns when done, which is called with mu held, returns true, or when the context ends.
func (s *Server) await(ctx context.Context, done func() bool) {
	for {
		s.mu.Lock()
		ok, moved := done(), s.moved
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// Close ends all connections and sessions, whose programs go on with the routes that they have, and waits for the server's
// goroutines. Further calls do nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for conn := range s.sessions.open {
		_ = conn.Close() // its goroutines end by it
	}
	s.move()
	s.mu.Unlock()
	err := s.http.Close()
	s.change.Lock()
	s.unprepare()
	s.change.Unlock()
	s.served.Wait()
	s.unlock()
	return err
}
