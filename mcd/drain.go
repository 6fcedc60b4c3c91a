package mcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// A message that takes a new route may overtake one that was sent by the old one. A drain prevents
// that:
//
//	sends to the node are held back    Send waits, TrySend is refused, what is posted stays posted
//	a probe follows the last of them   by the old route: same links and queues, no overtaking
//	its reply is awaited               all that was sent before has arrived: see arrivals
//	the route is changed               and sends go on
//
// Only the lanes concerned are held, each of a node and a link: see sendQueue.

// drain is an endpoint's part in drains.
type drain struct {
	turn chan struct{}     // of capacity 1: holds a token while a drain is under way
	held map[Path]struct{} // their lanes; guarded by tableMu
}

func (d *drain) init() {
	d.turn = make(chan struct{}, 1)
	d.held = make(map[Path]struct{})
}

// Drain runs change, which is to change the routes to some nodes, when all that was sent to them
// before has arrived, and holds back what is sent to them meanwhile. So no message overtakes
// another across the change. Send and PostSend wait, TrySend returns transport.ErrBusy. Messages to
// other nodes, to groups and to all are not held back. Arrived means taken from the link by the
// node, not by its program.
//
// All links of the endpoint are drained but those that are gone, and all nodes at once. Probes are
// repeated until ctx ends. Then, or if another error comes first, change is not run, and sends go
// on by the old route: *NoAnswerError, ErrUnknownNode, ErrClosed. Otherwise Drain returns change's
// error. Drains of one endpoint follow one another. change must not send to the nodes, and Receive
// functions must not call Drain.
func (e *Endpoint) Drain(ctx context.Context, change func() error, nodes ...NodeID) error {
	return e.drainTogether(ctx, 0, change, func(a *arrivals) error { return a.addNodes(nodes) })
}

// drainTogether is drainGroups with one group, behind which change is run once it has arrived.
func (e *Endpoint) drainTogether(
	ctx context.Context, timeout time.Duration, change func() error, find func(*arrivals) error,
) error {
	var outcome error
	err := e.drainGroups(ctx, timeout, 1, find, func(_ []int, err error) {
		if err != nil {
			outcome = fmt.Errorf("drain: %w (the routes are as they were)", err)
			return
		}
		outcome = change()
	})
	return cmp.Or(err, outcome)
}

// drainGroups drains groups of paths, which find adds once the drain has its turn, each by itself.
// It awaits the turn until ctx ends, or else fails. It awaits arrivals until ctx ends, or for
// timeout after that, unless it is 0. change is called for each group: see arrivals.await.
func (e *Endpoint) drainGroups(
	ctx context.Context, timeout time.Duration, groups int, find func(*arrivals) error,
	change func(groups []int, err error),
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
	a := newArrivals(e, groups)
	if err := find(a); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	e.hold(a.paths)
	defer e.release(a.paths) // what is not yet, if change panics
	a.await(ctx, change)
	return nil
}

// addNodes has the one group wait for the present paths to the nodes, by all links.
func (a *arrivals) addNodes(nodes []NodeID) error {
	for _, n := range nodes {
		if n == a.e.cfg.Node {
			continue
		}
		for nic := range a.e.nics {
			p, err := a.e.Path(n, nic)
			if err != nil {
				return err
			}
			a.add(0, p)
		}
	}
	return nil
}

// addAddresses has the group of each address wait for the present paths to other nodes' links that
// have it. That of Broadcast waits for all that follow the default route. Addresses of no node have
// no path.
func (a *arrivals) addAddresses(groups map[transport.MAC]int) {
	e, t := a.e, a.e.table.Load()
	byDefault, hasDefault := groups[transport.Broadcast]
	for _, n := range t.nodes {
		if n.ID == e.cfg.Node {
			continue
		}
		for nic, mac := range n.MACs[:len(e.nics)] {
			to := &t.lookup(n.ID).neighbours[nic]
			tag, _ := e.router.toNeighbour(to)
			p := Path{Node: n.ID, NIC: nic, OptionalTag: tag}
			if g, ok := groups[mac]; ok {
				a.add(g, p)
			}
			if hasDefault && e.router.followsDefault(to) {
				a.add(byDefault, p)
			}
		}
	}
}

// hold holds back sends by the paths. When it returns, no earlier one is still under way.
func (e *Endpoint) hold(paths []Path) {
	e.tableMu.Lock()
	for _, p := range paths {
		e.drain.held[p] = struct{}{}
		e.lookup(p.Node).hold(e, p.NIC, true)
	}
	e.tableMu.Unlock()
	for _, p := range e.openPorts() {
		p.out.awaitSenders()
	}
}

// release lets sends by the paths go, where they are held.
func (e *Endpoint) release(paths []Path) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	for _, p := range paths {
		if _, held := e.drain.held[p]; held {
			e.lookup(p.Node).hold(e, p.NIC, false)
			delete(e.drain.held, p)
		}
	}
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

// AddressDrain is Endpoint.Drain by addresses in place of node numbers, as packages of VLAN routes
// know nodes.
type AddressDrain struct {
	Endpoint *Endpoint
	// Timeout bounds the wait for arrivals, from when earlier drains of the endpoint are over: its
	// own context bounds the wait for these, too. 0: the context alone does.
	Timeout time.Duration
}

// Drain is Endpoint.Drain for what is sent to these addresses alone: a node's other addresses, by
// other links of the endpoint, go on. transport.Broadcast stands for the default route, that is for
// all addresses of nodes that have no route of their own in a vlan.Table, or by another router the
// tag of Broadcast. Addresses of others, to which the endpoint sends nothing, do not matter.
func (d AddressDrain) Drain(ctx context.Context, change func() error, dst ...transport.MAC) error {
	groups := make(map[transport.MAC]int)
	for _, mac := range dst {
		groups[mac] = 0
	}
	find := func(a *arrivals) error { a.addAddresses(groups); return nil }
	return d.Endpoint.drainTogether(ctx, d.Timeout, change, find)
}

// DrainEach drains addresses, as Drain knows them, each by itself and all at once: who is silent
// holds up no other. It calls change, which is to change the routes to dst, once for each address,
// for several at once where it can: without an error when all that was sent there has arrived, and
// with Drain's where it has not. What is held back goes on behind that call, be there an error or
// not: change decides by which route. Several calls follow one another. Where the drain has not got
// its turn nothing was held back.
func (d AddressDrain) DrainEach(
	ctx context.Context, change func(dst []transport.MAC, err error), dst ...transport.MAC,
) {
	dst = slices.Clone(dst)
	slices.SortFunc(dst, transport.MAC.Compare)
	dst = slices.Compact(dst)
	groups := make(map[transport.MAC]int)
	for g, mac := range dst {
		groups[mac] = g
	}
	find := func(a *arrivals) error { a.addAddresses(groups); return nil }
	err := d.Endpoint.drainGroups(ctx, d.Timeout, len(dst), find, func(groups []int, err error) {
		var changed []transport.MAC
		for _, g := range groups {
			changed = append(changed, dst[g])
		}
		if err != nil {
			err = fmt.Errorf("drain: %w", err)
		}
		change(changed, err)
	})
	if err != nil && len(dst) > 0 {
		change(dst, err)
	}
}
