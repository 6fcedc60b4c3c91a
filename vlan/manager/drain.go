package manager

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// Drainer keeps messages from overtaking each other across a change of routes. For an endpoint of
// package mcd it is mcd.AddressDrain.
type Drainer interface {
	// Drain waits until all that was sent to the nodes with these addresses has arrived, and holds
	// back what is sent to them meanwhile; runs change; and lets go what it has held back. It
	// returns change's error, or its own if change was not run.
	Drain(ctx context.Context, change func() error, dst ...transport.MAC) error
}

// EachDrainer is a Drainer that drains nodes each by itself, so that one that is silent holds up no
// other. mcd.AddressDrain is one.
type EachDrainer interface {
	Drainer
	// DrainEach does for each address, and for all at once, what Drain does, and runs change for
	// those of which the wait is over: without an error if all has arrived, with its own when ctx
	// has ended. What it has held back for them goes on after that.
	DrainEach(ctx context.Context, change func(dst []transport.MAC, err error), dst ...transport.MAC)
}

// together has a Drainer drain addresses for an EachDrainer's change: all, or none.
type together struct{ Drainer }

// DrainEach implements EachDrainer.
func (t together) DrainEach(
	ctx context.Context, change func(dst []transport.MAC, err error), dst ...transport.MAC,
) {
	if err := t.Drain(ctx, func() error { change(dst, nil); return nil }, dst...); err != nil {
		change(dst, err)
	}
}

// With a drainer, routes of the stream become dirty first, and enter the table in the next drain
// that covers them: that of the program's own request, or one of drainLoop for what others have
// changed. Each drain installs the latest routes, so that their order does not matter.

// DrainWith has each change of the table drained from now on, the program's own and others'. It is
// called once the endpoint that sends by the table exists, and before it sends:
//
//	s, err := manager.Dial(ctx, "unix", manager.DefaultSocket)
//	e, err := mcd.Open(mcd.Config{Router: s.Table(), ...}, link)
//	s.DrainWith(mcd.AddressDrain{Endpoint: e})
//
// With an EachDrainer a node that does not answer spoils the drain of no other. Another source's
// change of its route is made after Dialer.DrainTimeout all the same, before what was held back for
// it goes on. Nodes that follow the default route change together. Messages to groups and to all
// follow that, too, and are not covered: across a change of it one may overtake another. A
// failover's change is not drained: frames on a path that is down do not arrive.
func (s *Session) DrainWith(d Drainer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drainer = d; d == nil {
		_ = s.fib.installAll() // what no table takes stays dirty
	}
}

// change makes a request of the program's that changes the routes to dsts, behind a drain if there
// is a drainer. It calls done as request does.
func (s *Session) change(
	ctx context.Context, dsts []transport.MAC, method string, body any, done func(api.Version),
) error {
	s.mu.Lock()
	drainer := s.drainer
	s.mu.Unlock()
	run := func() error {
		select {
		case s.asking <- struct{}{}:
			defer func() { <-s.asking }()
		case <-ctx.Done():
			return ctx.Err()
		}
		err := s.request(ctx, method, body, done)
		return errors.Join(err, s.install(dsts))
	}
	if drainer == nil || len(dsts) == 0 {
		return run()
	}
	return s.drain(ctx, drainer, run, dsts)
}

// drain runs a change behind a drain of the session's own.
func (s *Session) drain(ctx context.Context, d Drainer, change func() error, dsts []transport.MAC) error {
	s.cover(dsts, 1)
	defer s.cover(dsts, -1)
	return d.Drain(ctx, change, dsts...)
}

// settle installs, behind a drain, the routes of pairs that were as the program has asked already,
// or became so, by another source's change that is not in the table yet.
func (s *Session) settle(ctx context.Context, changes []api.Change) error {
	s.mu.Lock()
	drainer := s.drainer
	s.mu.Unlock()
	dsts := s.peersOf(changes, func(peer transport.MAC, _ transport.VID) bool { return s.fib.dirty[peer] })
	if drainer == nil || len(dsts) == 0 {
		return nil // without a drainer no route waits
	}
	return s.drain(ctx, drainer, func() error { return s.install(dsts) }, dsts)
}

func (s *Session) install(dsts []transport.MAC) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fib.install(dsts)
}

// cover notes that destinations are behind one more drain of the program's own, or one less.
// drainLoop takes over what that drain has left, as when its context has ended.
func (s *Session) cover(dsts []transport.MAC, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dst := range dsts {
		if s.own[dst] += by; s.own[dst] == 0 {
			delete(s.own, dst)
		}
	}
	s.wakeIfDue()
}

// wakeIfDue wakes drainLoop if it has work. The caller holds mu.
func (s *Session) wakeIfDue() {
	if s.ack == 0 && len(s.uncovered()) == 0 {
		return
	}
	select {
	case s.woken <- struct{}{}:
	default: // it is awake
	}
}

// uncovered returns the dirty destinations that no drain of the program's own covers. The caller
// holds mu.
func (s *Session) uncovered() (dsts []transport.MAC) {
	for dst := range s.fib.dirty {
		if s.own[dst] == 0 {
			dsts = append(dsts, dst)
		}
	}
	return dsts
}

// drainLoop installs what other sources have changed, behind a drain, and tells the manager what
// the program sends by, until Close.
func (s *Session) drainLoop() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.woken:
		}
		for s.drainOthers() {
		}
		s.mu.Lock()
		var ack api.Version
		if s.fib.isClean() && s.lost == nil {
			ack, s.ack = s.ack, 0
		}
		s.mu.Unlock()
		if ack != 0 {
			s.post(s.ctx, "applied", api.SessionApplied{Version: ack})
		}
	}
}

// drainOthers installs the dirty routes that no drain of the program's own covers. Where the drain
// fails they are installed all the same: to stay on a path that all others have left is worse than
// messages that overtake each other. It reports whether others are to be drained now, as they have
// waited for the default route: see fib.waits.
func (s *Session) drainOthers() (again bool) {
	s.mu.Lock()
	dsts, drainer := s.uncovered(), s.drainer
	waited := slices.ContainsFunc(dsts, s.fib.waits)
	s.mu.Unlock()
	if len(dsts) == 0 || drainer == nil {
		return false
	}
	each, ok := drainer.(EachDrainer)
	if !ok {
		each = together{drainer}
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.dialer.DrainTimeout)
	defer cancel()
	each.DrainEach(ctx, s.installOthers, dsts...)
	s.mu.Lock()
	defer s.mu.Unlock()
	return waited && !s.fib.dirty[transport.Broadcast]
}

// installOthers installs routes to destinations whose drain has ended, by an error perhaps.
func (s *Session) installOthers(dsts []transport.MAC, failed error) {
	if failed != nil && s.ctx.Err() != nil {
		return // the session is closed: its table stays as it is
	}
	err := s.install(dsts)
	if err = cmp.Or(failed, err); err == nil {
		return
	}
	s.mu.Lock()
	s.stats.Undrained++
	s.mu.Unlock()
	s.event(Event{Kind: EventUndrained, Err: err})
}

// report reports the program's counters, as the manager has asked; 0 if it has not.
func (s *Session) report(ctx context.Context, number uint64) {
	counts := slices.DeleteFunc(s.fib.table.Counts(), func(c vlan.Sent) bool { return c.Frames == 0 })
	s.post(ctx, "counters", api.SessionReport{Report: number, Counts: counts})
}

// post tells the manager something that it does not wait for: if that fails the stream fails, too,
// and the session connects again.
func (s *Session) post(ctx context.Context, what string, doc any) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, _ = ask[api.Changed](ctx, s.client, http.MethodPost, s.path(what), 0, doc)
}
