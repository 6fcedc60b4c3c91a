package manager

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// Dialer holds the settings of a session beyond its address. The zero Dialer is that of Dial.
type Dialer struct {
	// Program is the session's name in tables and logs. Empty: the program's name and process
	// number.
	Program string
	// TLS is the configuration for TCP; nil: no TLS.
	TLS *tls.Config
	// DrainTimeout bounds the drain before a change of another source, with the wait until the
	// program's own drains are over. After it the routes to nodes that have not answered are
	// changed without, and an event tells so. 0: one second. A drain before the session's own
	// change ends with its context. Less than a millisecond is refused. See Session.DrainWith.
	DrainTimeout time.Duration
	// OnEvent, if not nil, is called with what happens to the session. It must neither wait nor
	// call the session.
	OnEvent func(Event)
}

// Session is a program's connection to its node's manager, and the table that the program sends by.
// SetRoute changes the table at once; the manager changes it whenever another source changes the
// node's routes.
//
// If the manager is lost the table stays in force; the session connects again by itself, and asks
// again for the pairs that the program had asked for. All methods may be called from any goroutine.
//
// Source: VFREC §4.2.
type Session struct {
	client *Client
	lane   *Client // for changes; guarded by asking
	dialer Dialer
	id     string

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // goroutines: streamLoop, drainLoop, and one for each report
	asking  chan struct{}  // of capacity 1: held by the change under way
	woken   chan struct{}  // of capacity 1: holds a token if drainLoop has work

	// mu guards what follows.
	mu      sync.Mutex
	self    transport.MAC
	fib     *fib
	drainer Drainer                           // nil: changes are not drained
	own     map[transport.MAC]int             // destinations behind a drain of the session's own
	lost    error                             // why there is no stream; nil: there is one
	streams int                               // that there have been
	during  context.Context                   // ends when answers asked for in the latest stream are due
	expire  context.CancelFunc                // ends during
	moved   *sync.Cond                        // on mu: fib or lost has changed
	pairs   map[transport.MAC]api.SessionPair // that the program has asked for, by the other node
	dropped map[transport.MAC]api.Version     // at which this stream told that a pair was taken back
	ack     api.Version                       // to be reported as applied once fib is clean; 0: none
	stats   Stats
	closed  bool
}

// Dial begins a session with the manager at an address, network being "unix" or "tcp".
//
// Errors: api.ErrUnreachable, api.ErrProtocol if the answer is not a manager's or an older one's,
// or a refusal.
func Dial(ctx context.Context, network, addr string) (*Session, error) {
	return new(Dialer).Dial(ctx, network, addr)
}

// Dial begins a session with the manager at an address, network being "unix" or "tcp".
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*Session, error) {
	if d.DrainTimeout != 0 && d.DrainTimeout < time.Millisecond {
		return nil, fmt.Errorf("session with a manager: Dialer.DrainTimeout %v: want 0, or 1ms or more (a number "+
			"without a unit is in nanoseconds)", d.DrainTimeout)
	}
	s := &Session{
		client: NewClient(Addr{network, addr}, d.TLS), dialer: *d, id: rand.Text(), fib: newFIB(),
		asking: make(chan struct{}, 1), woken: make(chan struct{}, 1),
		own: make(map[transport.MAC]int), pairs: make(map[transport.MAC]api.SessionPair),
		dropped: make(map[transport.MAC]api.Version),
	}
	s.moved = sync.NewCond(&s.mu)
	s.dialer.Program = cmp.Or(d.Program, fmt.Sprintf("%s[%d]", filepath.Base(os.Args[0]), os.Getpid()))
	s.dialer.DrainTimeout = cmp.Or(d.DrainTimeout, time.Second)
	s.lane = s.client.onLane()
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	events, err := s.connect(ctx)
	if err != nil {
		s.cancel()
		s.client.Close()
		return nil, fmt.Errorf("session: manager %v: %w", s.client.addr, err)
	}
	s.running.Go(func() { s.streamLoop(events) }) // both end with s.ctx; Close waits for them
	s.running.Go(s.drainLoop)
	return s, nil
}

// Table returns the table that the program is to send by: it is for mcd.Config's Router.
func (s *Session) Table() *vlan.Table { return s.fib.table }

// MAC returns the node's address, which all its pairs have.
func (s *Session) MAC() transport.MAC {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.self
}

// Stats is the state of a session.
type Stats struct {
	Connected  bool
	Lost       error       // why it is not connected
	Version    api.Version // of the manager's routes
	Reconnects uint64
	Dropped    uint64 // pairs that the manager has taken back: see EventDropped
	Undrained  uint64 // changes that were made though their drain failed
}

// Stats returns the session's state.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Connected, stats.Lost, stats.Version = s.lost == nil, s.lost, s.fib.version
	return stats
}

// SetRoute has both directions between two nodes use a VID, as far as this node is concerned: the
// program on the other node has to do the same. When it returns nil, frames carry the VID from then
// on. Of the changes of several programs on a node the latest is in force, until its program takes
// it back or ends. Changes of other nodes' pairs are checked and have no effect here.
//
// Errors: plan.ErrUnknownNode, api.ErrBadVID, api.ErrNoPlan, and api.ErrUnreachable while the
// manager is lost; these have changed nothing. If ctx ends first, or the manager is lost while it
// is asked, the change may still be made, and the table follows it.
//
// Source: VFREC §4.2 (VFN_SetRouteMPI).
func (s *Session) SetRoute(ctx context.Context, a, b transport.MAC, vid transport.VID) error {
	return s.SetRoutes(ctx, api.Change{A: a, B: b, VID: vid})
}

// SetRoutes makes several changes as SetRoute does: all, at once, or with an error none.
func (s *Session) SetRoutes(ctx context.Context, changes ...api.Change) error {
	if len(changes) == 0 {
		return nil
	}
	err := s.change(ctx, s.affected(changes), http.MethodPatch, map[string]any{"pairs": changes},
		func(v api.Version) { s.keep(changes, v) })
	if err == nil {
		err = s.settle(ctx, changes)
	}
	if err != nil {
		return fmt.Errorf("session: set route: %w", err)
	}
	return nil
}

// Reset takes back all that the program has asked for. Source: VFREC §4.1.
func (s *Session) Reset(ctx context.Context) error {
	s.mu.Lock()
	dsts := slices.Collect(maps.Keys(s.pairs))
	s.mu.Unlock()
	err := s.change(ctx, dsts, http.MethodDelete, nil, func(api.Version) { clear(s.pairs) })
	if err != nil {
		return fmt.Errorf("session: reset: %w", err)
	}
	return nil
}

// affected returns the destinations whose routes the changes are going to change.
func (s *Session) affected(changes []api.Change) []transport.MAC {
	return s.peersOf(changes, func(peer transport.MAC, vid transport.VID) bool {
		return s.fib.routes[peer].Tag.VID != vid
	})
}

// peersOf returns the other nodes of this node's pairs for which a condition holds, which is asked
// with mu held.
func (s *Session) peersOf(
	changes []api.Change, holds func(peer transport.MAC, vid transport.VID) bool,
) (dsts []transport.MAC) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		if peer, own := c.Peer(s.self); own && holds(peer, c.VID) {
			dsts = append(dsts, peer)
		}
	}
	slices.SortFunc(dsts, transport.MAC.Compare)
	return slices.Compact(dsts) // a pair may be given in both orders
}

// request asks the manager to change the session's pairs, and returns when the stream has told the
// routes of the answer's version. It calls done with that version, with mu held and while the
// stream lasts, so that a later stream begins with what done has noted.
func (s *Session) request(ctx context.Context, method string, body any, done func(api.Version)) error {
	for {
		s.mu.Lock()
		stream, during, err := s.streams, s.during, s.usable()
		s.mu.Unlock()
		if err != nil {
			return err
		}
		v, again, err := s.askOnce(ctx, during, method, body)
		if err == nil && !again {
			again, err = s.awaitVersion(ctx, stream, v, done)
		}
		if !again {
			return err
		}
	}
}

// askOnce makes a request for the session's pairs, and returns the version of the answer. It does
// not await that beyond during: a manager that is stopped keeps the connection and says nothing. If
// another stream has begun by then the request is to be made again.
func (s *Session) askOnce(
	ctx, during context.Context, method string, body any,
) (v api.Version, again bool, err error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(during, cancel)()
	a, err := ask[api.Changed](limited, s.lane, method, s.path("pairs"), 0, body)
	switch {
	case errors.Is(err, api.ErrNoSession): // a manager that was restarted
		err = unreachable(err)
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		err = s.usable()
		again = err == nil
	}
	return a.Version, again, err
}

// awaitVersion waits until a stream has told a version, and calls done. If another stream has
// begun meanwhile the request has to be made again: the manager may have carried it out before that
// stream or behind its beginning.
func (s *Session) awaitVersion(
	ctx context.Context, stream int, v api.Version, done func(api.Version),
) (again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for waits := 0; ; waits++ {
		switch err := s.usable(); {
		case err != nil:
			return false, err
		case s.streams != stream:
			return true, nil
		case s.fib.version >= v:
			done(v)
			return false, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case waits == 0: // most requests need not wait
			defer context.AfterFunc(ctx, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.moved.Broadcast()
			})()
		default:
			s.moved.Wait()
		}
	}
}

// usable returns why no request can be made. The caller holds mu.
func (s *Session) usable() error {
	switch {
	case s.closed:
		return api.ErrClosed
	case s.lost != nil:
		return fmt.Errorf("manager %v: %w (the session connects again; the table stays as it is)",
			s.client.addr, unreachable(s.lost))
	}
	return nil
}

func (s *Session) path(what string) string { return "/v1/sessions/" + s.id + "/" + what }

// keep notes pairs that the program has asked for at a version, except those of other nodes, which
// have no effect here, and those that the manager has taken back since. The caller holds mu.
func (s *Session) keep(changes []api.Change, v api.Version) {
	for _, c := range changes {
		if peer, own := c.Peer(s.self); own && s.dropped[peer] <= v {
			s.pairs[peer] = api.SessionPair{Change: c, Since: v}
		}
	}
}

// closeTimeout bounds the requests of Close. What this machine stands still for does not count: the
// manager's answer may be there, unread.
const closeTimeout = time.Second

// Close takes back all that the program has asked for, without a drain, reports its counters, and
// ends the session: the table stays as it is from then on. If the manager is lost the table keeps
// the program's routes; the manager itself has taken them back. Further calls do nothing. Source:
// VFREC §4.2 (VFN_FinalizeMPI).
func (s *Session) Close() error {
	s.mu.Lock()
	closed, connected := s.closed, s.lost == nil
	s.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	if connected {
		ctx, cancel := standstill.WithTimeout(context.Background(), closeTimeout)
		s.DrainWith(nil) // the nodes that a drain would ask may have ended already
		err = s.Reset(ctx)
		s.report(ctx, 0)
		cancel()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
	s.asking <- struct{}{} // the change under way has ended, or does so now
	s.lane.Close()
	<-s.asking
	s.client.Close()
	if errors.Is(err, api.ErrClosed) {
		return nil // another call has closed it meanwhile
	}
	return err
}
