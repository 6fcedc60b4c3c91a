package manager

import (
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/claims"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// What the journal calls changes.
const (
	actPlan     = "plan"
	actPairs    = "pairs"
	actReset    = "reset"
	actRollback = "rollback"
	actSession  = "session"
	actForce    = "failover"
	actUnforce  = "restored"
)

const byOperator = "operator"

// condition is what a change depends on: If-Match. The zero condition always holds.
type condition struct {
	version uint64
	given   bool
}

// check returns an error that is ErrChanged unless nobody has changed the setting since the version was read. Programs' changes
// do not count: they come and go by themselves. The caller holds mu.
func (s *Server) check(c condition) error {
	if !c.given || s.planVersion <= c.version && c.version <= s.version {
		return nil
	}
	err := fmt.Errorf("%w: its version is %d, not %d (read it again)", ErrChanged, s.planVersion, c.version)
	e, _ := refusal(err)
	e.Version = s.version
	return e
}

// set replaces the setting: it is validated first, then written, then in force. The caller holds change, and nothing is prepared.
func (s *Server) set(next setting, act string, c condition) (Changed, error) {
	st, err := s.plannedState(next, act, c)
	if err != nil {
		return Changed{}, err
	}
	if err := s.file.stage(st); err != nil {
		return Changed{}, err
	}
	answer, err := s.publish(st, act)
	if err == nil {
		s.settle(&answer)
	}
	return answer, err
}

// settle makes a change survive a power failure, or says in its answer that it may not: it cannot be taken back any more.
func (s *Server) settle(answer *Changed) {
	if err := s.file.settle(); err != nil {
		answer.Warning = err.Error()
		s.log.Error("a change may not survive a power failure", "err", err)
	}
}

// plannedState returns the state that a setting would lead to, or why it cannot be.
func (s *Server) plannedState(next setting, act string, c condition) (*state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if err := s.check(c); err != nil {
		return nil, err
	}
	if _, err := next.apply(claims.New(s.cfg.MAC)); err != nil {
		return nil, err
	}
	st := s.state
	st.setting = next
	st.VersionLimit = max(st.VersionLimit, s.version+versionsPerStart/2)
	st.Past = slices.Clone(st.Past)
	switch {
	case act == actRollback:
		st.Past = st.Past[:len(st.Past)-1]
	default:
		st.Past = append(st.Past, past{s.state.setting, time.Now()})
		st.Past = st.Past[max(0, len(st.Past)-MaxHistory):]
	}
	return &st, nil
}

// publish puts a staged state into force. With an error the old one still is. What survives a power failure is only known when
// the file has settled, too.
func (s *Server) publish(st *state, act string) (Changed, error) {
	if err := s.file.publish(); err != nil {
		s.file.discard()
		return Changed{}, err
	}
	answer := s.swap(st, act)
	s.log.Info("changed", "act", act, "version", answer.Version, "routes", answer.Routes, "dropped", len(answer.Dropped), "reason", st.Reason)
	return answer, nil
}

// swap makes a validated state the one in force.
func (s *Server) swap(st *state, act string) Changed {
	id := st.planID()
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.book.Routes()
	dropped, err := st.apply(s.book)
	if err != nil {
		panic(fmt.Sprintf("manager: a setting that was found valid is not: %v", err))
	}
	for _, d := range dropped {
		s.sessions.drop(d)
	}
	routes, gone := difference(before, s.book.Routes())
	s.state = *st
	s.changed(routes, gone, nil, Entry{Act: act, By: byOperator, Reason: st.Reason})
	s.planVersion, s.planID = s.version, id
	answer := Changed{Schema: Schema, Version: s.version, Routes: len(routes)}
	for _, d := range dropped {
		answer.Dropped = append(answer.Dropped, d.Change)
	}
	return answer
}

// difference returns the routes of after that are not in before, and whether there are destinations in before that after has not.
// Both are sorted by destination.
func difference(before, after []vlan.Route) (changed []vlan.Route, gone bool) {
	old := make(map[transport.MAC]vlan.Route, len(before))
	for _, r := range before {
		old[r.Dst] = r
	}
	for _, r := range after {
		if old[r.Dst] != r {
			changed = append(changed, r)
		}
		delete(old, r.Dst)
	}
	return changed, len(old) > 0
}

// alone runs f while nobody else changes the setting, and refuses if a change is prepared.
func (s *Server) alone(f func() (Changed, error)) (Changed, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if p := s.prepared; p != nil {
		return Changed{}, fmt.Errorf("%w: %q is prepared, and expires at %s if it is not committed (try again then)", ErrBusy, p.ID, p.Expires.Format(time.RFC3339Nano))
	}
	return f()
}

// SetPlan replaces the node's plan, and with it the operator's pairs. Programs keep what they have asked for as long as p can
// fulfil it. The error, which is plan.ErrInvalid or one of the state file's, has changed nothing.
func (s *Server) SetPlan(p *plan.Plan, reason string) (Changed, error) {
	return s.setPlan(p, reason, condition{})
}

func (s *Server) setPlan(p *plan.Plan, reason string, c condition) (Changed, error) {
	if err := checkNetwork(p); err != nil {
		return Changed{}, err
	}
	return s.alone(func() (Changed, error) {
		return s.set(setting{Plan: &Plan{*p}, Reason: reason}, actPlan, c)
	})
}

// checkNetwork returns why a plan cannot be carried out on the network that it names, if a generator makes that. A network's file is where the
// plan's was: who reads the plan from there checks it. The error is plan.ErrInvalid.
func checkNetwork(p *plan.Plan) error {
	if !topology.IsSpec(p.Topology) {
		return nil
	}
	if err := p.Validate(); err != nil {
		return err
	}
	network, err := topology.Parse(p.Topology)
	if err != nil {
		return fmt.Errorf("%w: %w", plan.ErrInvalid, err)
	}
	if err := p.Check(network); err != nil {
		return fmt.Errorf("on %s: %w", p.Topology, err)
	}
	return nil
}

// setPairs lays the operator's changes over the plan. Those of other nodes' pairs are ignored.
func (s *Server) setPairs(changes []Change, reason string, c condition) (Changed, error) {
	return s.alone(func() (Changed, error) {
		s.mu.Lock()
		next, ignored, err := s.state.with(changes, s.version+1, s.cfg.MAC)
		s.mu.Unlock()
		if err != nil {
			return Changed{}, err
		}
		next.Reason = reason
		answer, err := s.set(next, actPairs, c)
		answer.Ignored = ignored
		return answer, err
	})
}

// with returns the setting with changes over it, that are claimed since a version.
func (s setting) with(changes []Change, since uint64, self transport.MAC) (next setting, ignored int, err error) {
	book := claims.New(self)
	if _, err := s.apply(book); err != nil {
		return next, 0, err
	}
	if _, ignored, err = book.Claim(claims.Operator, since, changes); err != nil {
		return next, 0, err
	}
	return setting{Plan: s.Plan, Pairs: book.Claims(claims.Operator)}, ignored, nil
}

// reset goes back to the plan: the operator's pairs and what programs have asked for are taken back. What a failover has forced
// stays, as the paths are still dead.
func (s *Server) reset(reason string, c condition) (Changed, error) {
	return s.alone(func() (Changed, error) {
		s.mu.Lock()
		plan := s.state.Plan
		s.mu.Unlock()
		if plan == nil {
			return Changed{}, fmt.Errorf("%w: nothing to go back to", ErrNoPlan)
		}
		answer, err := s.set(setting{Plan: plan, Reason: reason}, actReset, c)
		if err != nil {
			return answer, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for sub := range s.sessions.all {
			for _, c := range s.book.Claims(sub.owner) {
				s.sessions.drop(claims.Dropped{Owner: sub.owner, Change: c.Change})
			}
			if routes := s.book.Release(sub.owner); len(routes) > 0 {
				s.changed(routes, false, nil, Entry{Act: actReset, By: byOperator, Reason: reason})
				answer.Routes += len(routes)
				answer.Version = s.version
			}
		}
		return answer, nil
	})
}

// rollback goes back to the setting before the present one. With an id it does so only if the present one came with the group
// change of that id.
func (s *Server) rollback(id, reason string) (Changed, error) {
	return s.alone(func() (Changed, error) {
		s.mu.Lock()
		st := s.state
		s.mu.Unlock()
		if id != "" && st.ID != id {
			return Changed{}, fmt.Errorf("%w: the change in force is %q, not %q", ErrChanged, st.ID, id)
		}
		if len(st.Past) == 0 {
			return Changed{}, fmt.Errorf("%w: it was the first", errNoHistory)
		}
		back := st.Past[len(st.Past)-1].setting
		if reason != "" {
			back.Reason = reason
		}
		return s.set(back, actRollback, condition{})
	})
}

// Force puts pairs on VIDs whatever else is wished for, until Unforce or Server's end: for paths that do not carry frames. Programs are told at
// once; the reason is in the table and in the log. Pairs of other nodes are ignored. The other end of each pair has to do the same.
//
// Errors are those of a change, and have changed nothing.
func (s *Server) Force(reason string, changes ...Change) error {
	if err := checkText("reason", reason, MaxReason); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	routes, err := s.book.Force(reason, changes)
	if err != nil {
		return err
	}
	s.changed(routes, false, nil, Entry{Act: actForce, By: actForce, Reason: reason})
	s.log.Warn("forced", "reason", reason, "pairs", len(changes), "routes", len(routes))
	return nil
}

// Unforce takes back what was forced for the pairs with the given nodes, with the reason. Nodes for which nothing is are ignored.
func (s *Server) Unforce(reason string, peers ...transport.MAC) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if routes := s.book.Unforce(peers...); len(routes) > 0 {
		s.changed(routes, false, nil, Entry{Act: actUnforce, By: actForce, Reason: reason})
		s.log.Info("restored", "reason", reason, "peers", len(peers), "routes", len(routes))
	}
}

// Plan returns the plan in force, which nobody may change, or nil.
func (s *Server) Plan() *plan.Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.Plan()
}

// Routes returns this node's routes in force, and their version.
func (s *Server) Routes() (routes []vlan.Route, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.Routes(), s.version
}

// errLease tells of a change that nobody has prepared.
func errLease(id string) error {
	return fmt.Errorf("%w: %q: never, or its lease is over (prepare it again)", ErrLease, id)
}
