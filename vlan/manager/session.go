package manager

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// Fencer keeps messages from overtaking each other across a change of routes. Who sends by a session's table can be one: of an endpoint of
// package mcd it is mcd.AddressDrain.
type Fencer interface {
	// Drain waits until all that was sent to the nodes with these addresses has arrived, and holds back what is sent to them meanwhile; runs
	// change; and lets what it held back go. It returns change's error, or its own if change was not run.
	Drain(ctx context.Context, change func() error, dst ...transport.MAC) error
}

// Dialer has what a session needs beyond an address. The zero Dialer is that of Dial.
type Dialer struct {
	// Program is what the session is called in tables and logs. Empty: the program's name and process number.
	Program string
	// TLS is the configuration with which to connect by TCP; nil: without TLS.
	TLS *tls.Config
	// FenceTimeout bounds the fence of a change that others make: when it is over the change is made all the same, and told of by an event. 0:
	// one second. Fences of one's own changes end with their context. See Session.FenceWith.
	FenceTimeout time.Duration
	// OnEvent, if not nil, is told of what happens to the session. It must not wait, and not call the session.
	OnEvent func(Event)
}

// Session is a program's connection to its node's manager, and the table that the program sends by. The table is changed at once by
// SetRoute, and by the manager whenever something else changes the node's routes.
//
// If the manager is lost the table stays in force; the session connects again by itself, and asks again for what the program had asked for. All
// methods may be called from any goroutine.
//
// Source: VFREC §4.2.
type Session struct {
	addr   Addr
	dialer Dialer
	id     string
	table  *vlan.Table
	self   transport.MAC

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // three goroutines: run, report and follow
	dirtied chan struct{}  // holds a token: follow has something to do

	writing sync.Mutex // held while a line is written; taken after nothing, released before mu

	// mu guards what follows.
	mu      sync.Mutex
	fencer  Fencer      // nil: changes are not fenced
	conn    *connection // nil: lost
	lost    error       // why
	last    uint64      // the request's id
	calls   map[uint64]*call
	claims  map[[2]transport.MAC]claimed
	want    map[transport.MAC]vlan.Route // the manager's routes
	dirty   map[transport.MAC]bool       // which of want are not in the table yet; only with a fencer
	whole   bool                         // routes may be gone from want: the table is to be replaced
	version uint64                       // of want
	ack     uint64                       // the version to say applied of, once nothing is dirty; 0: none
	stats   Stats
	closed  bool
}

// call is a request that waits for its answer.
type call struct {
	changes []Change        // claimed if the answer is no refusal
	reset   bool            // claims nothing any more
	own     []transport.MAC // nodes behind the request's own fence
	done    chan struct{}
	err     error
}

// Dial begins a session with the manager at an address, network being "unix" or "tcp".
//
// Errors: ErrUnreachable, ErrProtocol if what answers is no manager or an older one, or a refusal.
func Dial(ctx context.Context, network, addr string) (*Session, error) {
	return new(Dialer).Dial(ctx, network, addr)
}

// Dial begins a session with the manager at an address, network being "unix" or "tcp".
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*Session, error) {
	s := &Session{
		addr: Addr{network, addr}, dialer: *d, id: rand.Text(), dirtied: make(chan struct{}, 1),
		calls: make(map[uint64]*call), claims: make(map[[2]transport.MAC]claimed), want: make(map[transport.MAC]vlan.Route), dirty: make(map[transport.MAC]bool),
	}
	if s.dialer.Program == "" {
		s.dialer.Program = fmt.Sprintf("%s[%d]", filepath.Base(os.Args[0]), os.Getpid())
	}
	if s.dialer.FenceTimeout == 0 {
		s.dialer.FenceTimeout = time.Second
	}
	s.table, _ = vlan.NewTable(nil) // none is always right
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.connect(ctx); err != nil {
		s.cancel()
		return nil, fmt.Errorf("session: manager %v: %w", s.addr, err)
	}
	s.running.Add(3)
	go s.run()    // each ends with s.ctx; Close waits for them
	go s.report() //
	go s.follow() //
	return s, nil
}

// Table returns the table that the program is to send by: mcd.Config's Router.
func (s *Session) Table() *vlan.Table { return s.table }

// MAC returns the node's address, which its pairs have in common.
func (s *Session) MAC() transport.MAC {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.self
}

// FenceWith has each change of the table fenced from now on, the program's own and others'. It is called once what sends by the table is
// there, and before it sends:
//
//	s, err := manager.Dial(ctx, "unix", manager.DefaultSocket)
//	e, err := mcd.Open(mcd.Config{Router: s.Table(), ...}, link)
//	s.FenceWith(mcd.AddressDrain{Endpoint: e})
//
// What a failover forces is not fenced: what was sent by a dead path will not arrive.
func (s *Session) FenceWith(f Fencer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fencer = f
}

// Stats of a session.
type Stats struct {
	Connected  bool
	Lost       error  // why it is not connected
	Version    uint64 // of the routes in force
	Reconnects uint64
	Dropped    uint64 // changes of the program's that the manager has taken back: see EventDropped
	Unfenced   uint64 // changes that were made though their fence failed
}

// Stats returns the session's state.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Connected, stats.Lost, stats.Version = s.conn != nil, s.lost, s.version
	return stats
}

// SetRoute has both directions between two nodes use a VID, as far as this node is concerned: the program on the other node has to do
// the same. When it returns nil, what is sent from then on carries the VID. Of the changes of several programs on a node the
// latest counts, until its program takes it back or ends. Changes of other nodes' pairs are checked, and have no effect here.
//
// Errors: vlan.ErrUnknownNode, ErrBadVID, ErrNoPlan, and ErrUnreachable while the manager is lost; these have changed nothing. When ctx ends
// first, the change may still be made.
//
// Source: VFREC §4.2 (VFN_SetRouteMPI).
func (s *Session) SetRoute(ctx context.Context, a, b transport.MAC, vid transport.VID) error {
	return s.SetRoutes(ctx, Change{A: a, B: b, VID: vid})
}

// SetRoutes makes several changes as SetRoute does: all, at once, or with an error none.
func (s *Session) SetRoutes(ctx context.Context, changes ...Change) error {
	if len(changes) == 0 {
		return nil
	}
	c := &call{changes: slices.Clone(changes), done: make(chan struct{})}
	if err := s.do(ctx, c, &fromProgram{Set: c.changes}); err != nil {
		return fmt.Errorf("session: set route: %w", err)
	}
	return nil
}

// Reset takes back all that the program has asked for. Source: VFREC §4.1.
func (s *Session) Reset(ctx context.Context) error {
	if err := s.do(ctx, &call{reset: true, done: make(chan struct{})}, &fromProgram{Reset: true}); err != nil {
		return fmt.Errorf("session: reset: %w", err)
	}
	return nil
}

// Transaction is several changes that are made at once, between barriers if wanted. Between the changes of a pair's two ends its
// frames flood: a barrier before keeps a burst that is under way out of that time, one after keeps the next burst out of it.
//
// Source: VFREC §5.2.
type Transaction struct {
	Changes       []Change
	Before, After func(context.Context) error // may be nil
}

// Transaction runs t. If Before fails, nothing is changed; if After does, everything is.
func (s *Session) Transaction(ctx context.Context, t Transaction) error {
	if t.Before != nil {
		if err := t.Before(ctx); err != nil {
			return fmt.Errorf("session: transaction: before: %w (nothing was changed)", err)
		}
	}
	if err := s.SetRoutes(ctx, t.Changes...); err != nil {
		return err
	}
	if t.After != nil {
		if err := t.After(ctx); err != nil {
			return fmt.Errorf("session: transaction: after: %w (the changes were made)", err)
		}
	}
	return nil
}

// do carries a request out, behind a fence if it changes this node's routes and there is a Fencer.
func (s *Session) do(ctx context.Context, c *call, m *fromProgram) error {
	fencer := s.affects(c)
	if fencer == nil {
		return s.request(ctx, c, m)
	}
	return fencer.Drain(ctx, func() error {
		err := s.request(ctx, c, m)
		s.apply(c.own)
		return err
	}, c.own...)
}

// affects notes in a request the nodes whose routes it may change, and returns what is to fence that: nil if there is nothing to
// fence, or nothing to fence it with.
func (s *Session) affects(c *call) Fencer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fencer == nil {
		return nil
	}
	changes := c.changes
	if c.reset {
		changes = changesOf(slices.Collect(maps.Values(s.claims)))
	}
	for _, change := range changes {
		peer := change.A
		switch s.self {
		case change.A:
			peer = change.B
		case change.B:
		default:
			continue
		}
		if c.reset || s.want[peer].Tag.VID != change.VID {
			c.own = append(c.own, peer)
		}
	}
	if len(c.own) == 0 {
		return nil
	}
	return s.fencer
}

// request sends a request and returns when its answer was taken in.
func (s *Session) request(ctx context.Context, c *call, m *fromProgram) error {
	conn, err := s.enter(c, m)
	if err != nil {
		return err
	}
	if err := s.write(conn, m); err != nil {
		_ = conn.Close() // which makes run fail all calls, this one included
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter makes the call known, so that its answer finds it.
func (s *Session) enter(c *call, m *fromProgram) (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.conn == nil:
		return nil, fmt.Errorf("manager %v: %w (it is being tried again; the table stays as it is)", s.addr, unreachable(s.lost))
	}
	s.last++
	m.ID = s.last
	s.calls[m.ID] = c
	return s.conn, nil
}

// write writes lines that follow each other.
func (s *Session) write(conn net.Conn, lines ...*fromProgram) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	for _, m := range lines {
		if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if err := writeLine(conn, m); err != nil {
			return err
		}
	}
	return nil
}

// closeTimeout is how long Close waits for a manager to take the program's changes back.
const closeTimeout = time.Second

// Close takes back all that the program has asked for, without a fence, reports its counters, and ends the session: the table stays as it is
// from then on. If the manager is lost the table keeps the program's routes; the manager itself has taken them back. Further calls do
// nothing. Source: VFREC §4.2 (VFN_FinalizeMPI).
func (s *Session) Close() error {
	s.mu.Lock()
	closed, conn := s.closed, s.conn
	s.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	if conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		s.FenceWith(nil) // the nodes that a fence would ask may have ended already
		err = s.Reset(ctx)
		s.applyAll()
		cancel()
		_ = s.tell(conn, 0, sentJSON(s.table.Counts())) // the last report may be lost
	}
	s.mu.Lock()
	s.closed = true
	if s.conn != nil {
		_ = s.conn.Close() // run ends by it
	}
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
	if errors.Is(err, ErrClosed) {
		return nil // somebody else has closed it meanwhile
	}
	return err
}
