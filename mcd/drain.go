package mcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// A message that takes a new route may overtake one that was sent by the old one. A drain prevents
// that:
//
//	sends to the node are held back    Send waits, TrySend is refused, what is posted stays posted
//	a probe follows the last of them   by the old route: same links and queues, no overtaking
//	its reply is awaited               all that was sent before has arrived
//	the route is changed               and sends go on
//
// Only the lanes concerned are held, each of a node and a link: see sendQueue.

// drain is an endpoint's part in drains.
type drain struct {
	turn chan struct{} // of capacity 1: holds a token while a drain is under way
	held []Path        // their lanes; guarded by tableMu
}

func (d *drain) init() { d.turn = make(chan struct{}, 1) }

// Drain runs change, which is to change the routes to some nodes, when all that was sent to them
// before has arrived, and holds back what is sent to them meanwhile. So no message overtakes
// another across the change. Send and PostSend wait, TrySend returns transport.ErrBusy. Messages to
// other nodes, to groups and to all are not held back. Arrived means taken from the link by the
// node, not by its program.
//
// All links of the endpoint are drained but those that are gone. Lost probes are repeated until ctx
// ends. Then, or if another error comes first, change is not run, and sends go on by the old route:
// *NoAnswerError, ErrUnknownNode, ErrClosed. Otherwise Drain returns change's error. Drains of one
// endpoint follow one another. change must not send to the nodes, and Receive functions must not
// call Drain.
func (e *Endpoint) Drain(ctx context.Context, change func() error, nodes ...NodeID) error {
	return e.drainPaths(ctx, 0, change, func() ([]Path, error) { return e.pathsTo(nodes) })
}

// drainPaths is Drain for the lanes of the paths that find returns once the drain has its turn. It
// waits for arrivals until ctx ends, or for timeout after that, unless it is 0.
func (e *Endpoint) drainPaths(
	ctx context.Context, timeout time.Duration, change func() error, find func() ([]Path, error),
) error {
	select {
	case e.drain.turn <- struct{}{}:
		defer func() { <-e.drain.turn }()
	case <-ctx.Done():
		return fmt.Errorf("drain: another one is under way: %w", ctx.Err())
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	paths, err := find()
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	e.hold(paths)
	defer e.release()
	for _, p := range paths {
		if err := e.awaitArrival(ctx, p); err != nil {
			return fmt.Errorf("drain: %w (the routes are as they were)", err)
		}
	}
	return change()
}

// pathsTo returns the present paths to the nodes, by all links.
func (e *Endpoint) pathsTo(nodes []NodeID) (paths []Path, err error) {
	for _, n := range nodes {
		if n == e.cfg.Node {
			continue
		}
		for nic := range e.nics {
			p, err := e.Path(n, nic)
			if err != nil {
				return nil, err
			}
			paths = append(paths, p)
		}
	}
	return paths, nil
}

// pathsToAddresses returns the present paths to other nodes' addresses, each by the link that it is
// of. Addresses of no node have none.
func (e *Endpoint) pathsToAddresses(dst []transport.MAC) (paths []Path, err error) {
	for _, n := range e.table.Load().nodes {
		for nic, mac := range n.MACs[:len(e.nics)] {
			if n.ID == e.cfg.Node || !slices.Contains(dst, mac) {
				continue
			}
			p, err := e.Path(n.ID, nic)
			if err != nil {
				return nil, err
			}
			paths = append(paths, p)
		}
	}
	return paths, nil
}

// hold holds back sends by the paths. When it returns, no earlier one is still under way.
func (e *Endpoint) hold(paths []Path) {
	e.tableMu.Lock()
	e.drain.held = paths
	for _, p := range paths {
		e.lookup(p.Node).hold(e, p.NIC, true)
	}
	e.tableMu.Unlock()
	for _, p := range e.openPorts() {
		p.out.awaitSenders()
	}
}

// release lets sends go.
func (e *Endpoint) release() {
	e.tableMu.Lock()
	for _, p := range e.drain.held {
		e.lookup(p.Node).hold(e, p.NIC, false)
	}
	e.drain.held = nil
	e.tableMu.Unlock()
}

// hold holds the peer's lane of a link, or lets it go. A nil peer has none.
func (p *peer) hold(e *Endpoint, nic int, on bool) {
	if p == nil {
		return
	}
	q := &e.nics[nic].queue
	q.mu.Lock()
	q.hold(&p.neighbours[nic].lane, on)
	q.send()
	q.unlock()
}

// Probes of a drain are repeated after firstProbe, and then after twice as long each time, to
// lastProbe. An answer takes tens of microseconds where nodes wait for it, and a millisecond where
// they must be woken first.
const (
	firstProbe = 5 * time.Millisecond
	lastProbe  = 200 * time.Millisecond
)

// awaitArrival returns when all that was sent by a path has arrived, or its link is gone.
func (e *Endpoint) awaitArrival(ctx context.Context, p Path) error {
	start := clock.Now()
	for timeout := firstProbe; e.isLeft(p.NIC); timeout = min(2*timeout, lastProbe) {
		try, cancel := context.WithTimeout(ctx, timeout)
		_, err := e.Ping(try, p, ProbeOptions{})
		cancel()
		over := ctx.Err() // looked at once: it may end in any instant
		var silent *NoAnswerError
		if errors.As(err, &silent) { // for as long as ctx, not as this probe
			silent.Silent, silent.cause = clock.Now().Sub(start), over
		}
		if over != nil || !errors.Is(err, ErrNoAnswer) {
			return err
		}
	}
	return nil
}

// AddressDrain is Endpoint.Drain by addresses in place of node numbers, as packages of VLAN routes
// know nodes.
type AddressDrain struct {
	Endpoint *Endpoint
	// Timeout bounds the wait for arrivals, from when earlier drains of the endpoint are over: its
	// own context bounds the wait for these, too. 0: the context alone does.
	Timeout time.Duration
}

// Drain is Endpoint.Drain for what is sent to these addresses alone: a node's other addresses, by
// other links of the endpoint, go on. Addresses of others, to which the endpoint sends nothing, do
// not matter.
func (d AddressDrain) Drain(ctx context.Context, change func() error, dst ...transport.MAC) error {
	find := func() ([]Path, error) { return d.Endpoint.pathsToAddresses(dst) }
	return d.Endpoint.drainPaths(ctx, d.Timeout, change, find)
}
