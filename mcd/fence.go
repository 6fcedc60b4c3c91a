package mcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// A message that goes by a new route may overtake one that was sent by the old one. A fence keeps it from that:
//
//	sends to the node are held back     Send waits, TrySend is refused, what is posted stays posted
//	a probe follows the last of them    by the old route: same links, same queues, so nothing overtakes it
//	its answer is awaited               all that was sent before has arrived
//	the route is changed                and sends go on
//
// Held peers are marked in a table of their own, which takes the place of the other one while a fence is up: a send that is not held
// looks at nothing that it did not look at before.

// fence is an endpoint's part in fences.
type fence struct {
	turn chan struct{}                 // of capacity 1: who is in it has a fence up
	held []NodeID                      // guarded by tableMu
	open atomic.Pointer[chan struct{}] // of the fence that is up: closed when it comes down
}

func (f *fence) init() { f.turn = make(chan struct{}, 1) }

// errHeld: the message's destination is behind a fence. It is transport.ErrBusy.
var errHeld = fmt.Errorf("a fence is up: %w", transport.ErrBusy)

// Fence runs change, which is to change the routes to some nodes, when all that was sent to them before has arrived, and holds
// back what is sent meanwhile: so no message overtakes another across the change. Send and PostSend wait, TrySend returns
// transport.ErrBusy. Messages to groups and to all are not held back. Arrived means taken from the link by the node, not by
// its program.
//
// All links of the endpoint are fenced. Lost probes are repeated until ctx ends. Then, or if another error comes first, change is not
// run, and sends go on by the old route: *NoAnswerError, ErrUnknownNode, ErrClosed. Otherwise Fence returns change's error.
// One fence is up at a time; others wait for it. change must not send to the nodes; handlers must not call Fence.
func (e *Endpoint) Fence(ctx context.Context, change func() error, nodes ...NodeID) error {
	select {
	case e.fence.turn <- struct{}{}:
		defer func() { <-e.fence.turn }()
	case <-ctx.Done():
		return fmt.Errorf("fence: another one is up: %w", ctx.Err())
	}
	paths, err := e.raise(nodes)
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	defer e.lower()
	for _, p := range paths {
		if err := e.settle(ctx, p); err != nil {
			return fmt.Errorf("fence: %w (the routes are as they were)", err)
		}
	}
	return change()
}

// raise holds back sends to the nodes, and returns the paths by which the sends before them went.
func (e *Endpoint) raise(nodes []NodeID) ([]Path, error) {
	var paths []Path
	for _, n := range nodes {
		if n == e.cfg.Node {
			continue
		}
		for nic := range e.links {
			p, err := e.Path(n, nic)
			if err != nil {
				return nil, err
			}
			paths = append(paths, p)
		}
	}
	open := make(chan struct{})
	e.fence.open.Store(&open)
	e.hold(nodes)
	for i := range e.ports { // who was sending when the table changed has sent
		if p := e.ports[i].Load(); p != nil {
			p.out.awaitTurn()
		}
	}
	return paths, nil
}

// awaitTurn returns when whoever is sending has sent.
func (o *outbox) awaitTurn() {
	o.mu.Lock()
	defer o.mu.Unlock()
}

// lower lets sends go.
func (e *Endpoint) lower() {
	e.hold(nil)
	close(*e.fence.open.Swap(nil))
	e.flush()
}

// hold holds these nodes back, and no others.
func (e *Endpoint) hold(nodes []NodeID) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	e.fence.held = nodes
	e.table.Store(e.table.Load().holding(nodes))
}

// holding returns the table in which the sends to these nodes, and to no others, are held back.
func (t *table) holding(nodes []NodeID) *table {
	held := &table{nodes: t.nodes, peers: slices.Clone(t.peers), generation: t.generation}
	for i, p := range held.peers {
		if p != nil && p.free != nil {
			held.peers[i] = p.free
		}
	}
	for _, n := range nodes {
		if p := held.lookup(n); p != nil && p.free == nil {
			held.peers[n] = &peer{macs: p.macs, templates: p.templates, counts: p.counts, free: p}
		}
	}
	return held
}

// Probes of a fence are repeated after firstProbe at first, and then after twice as long each time, to lastProbe. An answer takes
// tens of microseconds where nodes wait for it, and a millisecond where they must be woken first.
const (
	firstProbe = 5 * time.Millisecond
	lastProbe  = 200 * time.Millisecond
)

// settle returns when all that was sent by a path has arrived.
func (e *Endpoint) settle(ctx context.Context, p Path) error {
	start := clock.Now()
	for patience := firstProbe; ; patience = min(2*patience, lastProbe) {
		turn, cancel := context.WithTimeout(ctx, patience)
		_, err := e.Ping(turn, p, ProbeOptions{})
		cancel()
		var silent *NoAnswerError
		if errors.As(err, &silent) && ctx.Err() != nil {
			silent.Silent, silent.cause = clock.Now().Sub(start), ctx.Err()
		}
		if ctx.Err() != nil || !errors.Is(err, ErrNoAnswer) {
			return err
		}
	}
}

// awaitFence blocks a send that was refused with busy: until the fence is down, if it is held back by it, and for a moment if it may
// be behind others that are. It returns false if no fence is up.
func (e *Endpoint) awaitFence(ctx context.Context, busy error) bool {
	open := e.fence.open.Load()
	if open == nil {
		return false
	}
	var moment <-chan time.Time
	if !errors.Is(busy, errHeld) {
		moment = time.After(sendRetry)
	}
	select {
	case <-*open:
	case <-moment:
	case <-ctx.Done():
	}
	return true
}

// whyBusy says what a send by a link waited for that was refused with busy.
func (e *Endpoint) whyBusy(nic int, busy error) string {
	if errors.Is(busy, errHeld) {
		return "a fence is up"
	}
	return fmt.Sprintf("link %s has no room", transport.Name(e.links[nic]))
}

// AddressFence is Endpoint.Fence for who knows nodes by their addresses, as packages of VLAN routes do.
type AddressFence struct{ Endpoint *Endpoint }

// Fence is Endpoint.Fence for the nodes that have these addresses on one of the endpoint's links. Addresses of others, to which it
// sends nothing, do not matter.
func (f AddressFence) Fence(ctx context.Context, change func() error, dst ...transport.MAC) error {
	var nodes []NodeID
	for _, n := range f.Endpoint.Nodes() {
		if slices.ContainsFunc(n.MACs, func(m transport.MAC) bool { return slices.Contains(dst, m) }) {
			nodes = append(nodes, n.ID)
		}
	}
	return f.Endpoint.Fence(ctx, change, nodes...)
}
