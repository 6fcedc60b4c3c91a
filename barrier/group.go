package barrier

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
)

// Config of a group. The zero value is all nodes of the endpoint's table, and the algorithm that Auto chooses.
// All members must give the same, the logging excepted.
type Config struct {
	// ID tells groups of the same members apart: those of two libraries, or of two goroutines.
	ID uint32
	// Members are node numbers. Empty is all nodes of the endpoint's table, this one included.
	Members Mask
	// Algorithm of the barriers. Zero is schedule.Auto.
	Algorithm schedule.Algorithm
	// Port that barriers use on every node, shared by all groups. Zero is DefaultPort.
	Port mcd.PortID
	// Limit is how long a member may be silent before it counts as down. Zero is DefaultLimit. Members answer in the
	// background: it is not a limit to how late they may come.
	Limit time.Duration
	// Late is how long a barrier may take before Logger is told who has not come, by a roll call. Zero is never.
	Late time.Duration
	// Logger of late barriers. Nil is slog.Default.
	Logger *slog.Logger
}

const (
	// DefaultPort of barriers.
	DefaultPort mcd.PortID = 254
	// DefaultLimit of silence.
	DefaultLimit = engine.DefaultLimit
	// Numbers is how many barriers of one group can be in progress at one time.
	Numbers = engine.Numbers
)

// Options of one barrier. The zero Options are number 0 and all members.
type Options struct {
	// Number tells barriers of one group apart that are in progress at one time.
	Number uint8
	// Members are the ranks that take part, this one among them. Empty is all. Each mask counts its own generations.
	Members Mask
}

// Group is a set of nodes that have barriers together. All methods may be called from any goroutine; one number of one
// mask is for one goroutine at a time.
type Group struct {
	cfg Config
	hub *hub
	all *circle

	mu   sync.Mutex // guards part; taken before hub.mu
	part []*circle  // of the masks that were used
}

// NewGroup makes a group. It sends nothing: the other members may make theirs later. They must make groups of the same
// ID and members in the same order.
//
// Errors: ErrNotMember if this node is not a member; mcd.ErrUnknownNode for a member that the table does not have;
// mcd.ErrPortBusy; schedule.ErrWrong for an algorithm of one's own that is not right.
func NewGroup(ep *mcd.Endpoint, cfg Config) (*Group, error) {
	if cfg.Port == 0 {
		cfg.Port = DefaultPort
	}
	if cfg.Algorithm.IsZero() {
		cfg.Algorithm = schedule.Auto()
	}
	if cfg.Limit == 0 {
		cfg.Limit = DefaultLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Limit < 0 || cfg.Late < 0 {
		return nil, fmt.Errorf("barrier: Limit %v, Late %v (want 0 or more)", cfg.Limit, cfg.Late)
	}
	members, err := membersOf(ep, cfg.Members)
	if err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	g := &Group{cfg: cfg}
	if g.hub, err = joinHub(ep, cfg.Port); err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	g.all, err = g.newCircle(members, Mask{})
	if err != nil {
		_ = g.hub.leave() // the first error is the one to report
		return nil, fmt.Errorf("barrier: %w", err)
	}
	return g, nil
}

// membersOf returns the members' node numbers, ascending.
func membersOf(ep *mcd.Endpoint, mask Mask) (members []mcd.NodeID, err error) {
	known := Of(ep.Node())
	for _, n := range ep.Nodes() {
		known.add(int(n.ID))
	}
	if mask.IsZero() {
		mask = known
	}
	for _, n := range mask.Numbers() {
		if !known.Has(n) {
			return nil, fmt.Errorf("member %d: %w (the table has %v)", n, mcd.ErrUnknownNode, known)
		}
		members = append(members, mcd.NodeID(n))
	}
	if !mask.Has(int(ep.Node())) {
		return nil, fmt.Errorf("node %d, members %v: %w", ep.Node(), mask, ErrNotMember)
	}
	return members, nil
}

// Members returns the group's nodes: the one of rank r is the r-th.
func (g *Group) Members() []mcd.NodeID { return append([]mcd.NodeID(nil), g.all.nodes...) }

// Size returns the number of members.
func (g *Group) Size() int { return len(g.all.nodes) }

// Rank returns this node's rank: how many members have a lower number.
func (g *Group) Rank() int { return g.all.rank }

// Algorithm returns the algorithm that the group uses: what Auto has chosen.
func (g *Group) Algorithm() schedule.Algorithm { return g.all.algorithm }

// Barrier enters barrier number 0 of all members, and returns when all have entered. It is Arrive and Wait.
//
// Errors: ErrNodeDown, ErrMismatch (for good); ErrIncomplete, which is the context's error too, after which the barrier
// is still entered; ErrPending then; ErrClosed.
func (g *Group) Barrier(ctx context.Context) error { return g.BarrierWith(ctx, Options{}) }

// BarrierWith is Barrier with options.
func (g *Group) BarrierWith(ctx context.Context, o Options) error {
	t, err := g.ArriveWith(o)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// Arrive enters barrier number 0 of all members, and does not wait: the first phase of a fuzzy barrier. The ticket's Wait
// is the second one. Errors as for Barrier.
//
// Source: SCMD §2 (fuzzy barrier).
func (g *Group) Arrive() (Ticket, error) { return g.ArriveWith(Options{}) }

// ArriveWith is Arrive with options.
func (g *Group) ArriveWith(o Options) (Ticket, error) {
	c := g.all
	if len(o.Members.words) > 0 {
		var err error
		if c, err = g.circleOf(o.Members); err != nil {
			return Ticket{}, err
		}
	}
	return c.arrive(o.Number)
}

// circleOf returns the members of a mask.
func (g *Group) circleOf(mask Mask) (*circle, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.part {
		if c.mask.equal(mask) {
			return c, nil
		}
	}
	var members []mcd.NodeID
	for _, r := range mask.Numbers() {
		if r >= g.Size() {
			return nil, fmt.Errorf("barrier: mask %v: rank %d of a group of %d", mask, r, g.Size())
		}
		members = append(members, g.all.nodes[r])
	}
	if !mask.Has(g.Rank()) {
		return nil, fmt.Errorf("barrier: rank %d, mask %v: %w", g.Rank(), mask, ErrNotMember)
	}
	c, err := g.newCircle(members, mask)
	if err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	g.part = append(g.part, c)
	return c, nil
}

// circles returns the group's own members and those of all masks.
func (g *Group) circles() []*circle {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*circle{g.all}, g.part...)
}

// Without makes a group of the members but for some: those that are down. The other survivors must do the same.
// The old group is still to be closed.
func (g *Group) Without(nodes ...mcd.NodeID) (*Group, error) {
	cfg := g.cfg
	cfg.Members = Mask{}
	gone := Of(nodes...)
	for _, n := range g.all.nodes {
		if !gone.Has(int(n)) {
			cfg.Members.add(int(n))
		}
	}
	return NewGroup(g.hub.ep, cfg)
}

// Close leaves the group: it says goodbye to those who may still wait for messages of this member, and answers them
// until they have heard it, 50 ms at most. Waits end with ErrClosed. Further calls do nothing.
func (g *Group) Close() error {
	closed := false
	for _, c := range g.circles() {
		closed = c.close() || closed
	}
	if !closed {
		return nil
	}
	return g.hub.leave()
}

// Ticket is one entered barrier. It may be copied.
type Ticket struct {
	c          *circle
	number     uint8
	generation uint32
}

// Generation returns which one of its number's barriers it is, counted from 1.
func (t Ticket) Generation() uint32 { return t.generation }

// Done reports, without waiting, whether the barrier has ended, and how: nil if all members have entered. It makes
// progress.
func (t Ticket) Done() (bool, error) {
	if done, err := t.ended(); done {
		return true, err
	}
	t.c.hub.ep.Progress()
	return t.ended()
}

// ended reports whether the barrier has ended, and how.
func (t Ticket) ended() (bool, error) {
	if t.c == nil {
		return true, nil
	}
	t.c.hub.mu.Lock()
	defer t.c.hub.mu.Unlock()
	state, generation := t.c.engine.State(t.number)
	switch {
	case generation != t.generation:
		return true, nil // left, and others entered since
	case state == engine.Waiting:
		return false, nil
	}
	return true, t.c.slot(t.number).completion.Err()
}

// Wait returns when all members have entered the barrier: the second phase of a fuzzy barrier. While it waits, the
// calling goroutine polls. Errors as for Group.Barrier.
func (t Ticket) Wait(ctx context.Context) error {
	if t.c == nil {
		return nil
	}
	s := t.c.slot(t.number)
	if s.generation.Load() != t.generation {
		return nil // left, and others entered since
	}
	s.waiters.Add(1)
	err := t.c.hub.ep.Await(ctx, &s.completion)
	s.waiters.Add(-1)
	if err == nil || s.completion.Done() {
		return err
	}
	return t.c.incomplete(t, err)
}
