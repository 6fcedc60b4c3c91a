package manager

import (
	"context"
	"maps"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// With a fencer routes do not go into the table as they come: they are noted as dirty, and go into it in whichever fence comes next
// that covers them: the one of the program's own request, or one that follow makes for what others have changed. Each puts the
// latest route in, so that their order does not matter.

// takeFenced notes routes as dirty, and wakes follow unless the fence of a call covers them. The caller holds mu.
func (s *Session) takeFenced(m *fromManager, c *call, routes []vlan.Route) {
	if m.Full {
		before := s.want
		s.want = make(map[transport.MAC]vlan.Route, len(routes))
		for _, r := range routes {
			if before[r.Dst] != r {
				s.dirty[r.Dst] = true
			}
			delete(before, r.Dst)
			s.want[r.Dst] = r
		}
		for dst := range before {
			s.dirty[dst] = true
		}
		s.whole = s.whole || len(before) > 0
	}
	for _, r := range routes {
		if s.want[r.Dst] != r {
			s.want[r.Dst] = r
			s.dirty[r.Dst] = true
		}
	}
	if m.Urgent {
		s.putIn(routes)
	}
	for dst := range s.dirty {
		if c == nil || !slices.Contains(c.own, dst) {
			s.wake()
			return
		}
	}
}

func (s *Session) wake() {
	select {
	case s.dirtied <- struct{}{}:
	default: // it is awake
	}
}

// apply puts the routes to some destinations into the table, as far as they are dirty.
func (s *Session) apply(dsts []transport.MAC) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var routes []vlan.Route
	for _, dst := range dsts {
		if r, ok := s.want[dst]; ok && s.dirty[dst] {
			routes = append(routes, r)
		}
	}
	s.putIn(routes)
}

// putIn puts routes into the table. The caller holds mu.
func (s *Session) putIn(routes []vlan.Route) {
	if len(routes) == 0 {
		return
	}
	_ = s.table.Set(routes...) // the manager's routes are valid; if they were not, the old ones would stay
	for _, r := range routes {
		delete(s.dirty, r.Dst)
	}
}

// applyAll puts all routes into the table.
func (s *Session) applyAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.table.Replace(slices.Collect(maps.Values(s.want))) // likewise
	clear(s.dirty)
	s.whole = false
}

// follow puts what others have changed into the table, behind a fence, until Close.
func (s *Session) follow() {
	defer s.running.Done()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.dirtied:
		}
		s.mu.Lock()
		dsts, fencer := slices.Collect(maps.Keys(s.dirty)), s.fencer
		s.mu.Unlock()
		switch {
		case len(dsts) == 0:
		case fencer == nil:
			s.applyAll()
		default:
			s.applyBehindFence(fencer, dsts)
		}
		s.mu.Lock()
		conn, ack := s.conn, s.acknowledge()
		s.mu.Unlock()
		if conn != nil && ack != 0 {
			_ = s.write(conn, &fromProgram{Applied: ack}) // if it fails, run notices
		}
	}
}

// applyBehindFence puts all routes into the table while what goes to dsts is held back. What has become dirty meanwhile has its
// own turn. If the fence fails the routes go in all the same: to stay on a path that
// everybody else has left is worse than messages that overtake each other.
func (s *Session) applyBehindFence(fencer Fencer, dsts []transport.MAC) {
	ctx, cancel := context.WithTimeout(s.ctx, s.dialer.FenceTimeout)
	defer cancel()
	change := func() error {
		s.mu.Lock()
		whole := s.whole
		s.mu.Unlock()
		if whole {
			s.applyAll()
		} else {
			s.apply(dsts)
		}
		return nil
	}
	if err := fencer.Drain(ctx, change, dsts...); err != nil && s.ctx.Err() == nil {
		s.applyAll()
		s.mu.Lock()
		s.stats.Unfenced++
		s.mu.Unlock()
		s.event(Event{Kind: EventUnfenced, Err: err})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dirty) > 0 {
		s.wake()
	}
}
