package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
	"github.com/rawlane/rawlane/vlan/plan"
)

// A change of the running configuration has four steps: next makes the state that it leads to and
// validates it; the state file stages that beside the old one; publish puts it in the old one's
// place and activates it; fsync makes it survive a power failure.

// alone runs f while nothing else changes the running configuration, and refuses if a change is
// prepared.
func (s *Server) alone(r *http.Request, f func(condition) (api.Changed, error)) (any, error) {
	c, err := conditionOf(r)
	if err != nil {
		return nil, err
	}
	return s.exclusive(func() (api.Changed, error) { return f(c) })
}

func (s *Server) exclusive(f func() (api.Changed, error)) (api.Changed, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if p := s.prepared; p != nil {
		return api.Changed{}, errBusy(p)
	}
	return f()
}

// next returns the state that a running configuration leads to, or why it cannot be. The caller
// holds change.
func (s *Server) next(config runningConfig, c condition) (*state, error) {
	return s.plan(c, func(st *state) error {
		st.Past = append(st.Past, past{st.runningConfig, time.Now()})
		st.Past = st.Past[max(0, len(st.Past)-api.MaxHistory):]
		st.runningConfig, st.Undo = config, nil
		return nil
	})
}

// back returns the state that was in force before, skipping those for which skip holds.
func (s *Server) back(c condition, skip func(*runningConfig) bool) (*state, error) {
	return s.plan(c, func(st *state) error {
		for k := len(st.Past) - 1; k >= 0; k-- {
			if p := &st.Past[k].runningConfig; !skip(p) {
				st.Past, st.runningConfig, st.Undo = st.Past[:k], *p, nil
				return nil
			}
		}
		return fmt.Errorf("%w: it was the first", api.ErrNoHistory)
	})
}

// plan returns a copy of the state, edited and validated.
func (s *Server) plan(c condition, edit func(*state) error) (*state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, api.ErrClosed
	}
	if err := s.check(c); err != nil {
		return nil, err
	}
	st := s.state
	st.Past = slices.Clone(st.Past)
	if err := edit(&st); err != nil {
		return nil, err
	}
	if _, err := st.activate(rib.New(s.cfg.MAC)); err != nil {
		return nil, err
	}
	return &st, nil
}

// set stages, publishes and syncs a state.
func (s *Server) set(st *state, act, reason string) (api.Changed, error) {
	if err := s.file.stage(st); err != nil {
		return api.Changed{}, err
	}
	answer, err := s.publish(st, act, reason)
	if err == nil {
		s.fsync(&answer)
	}
	return answer, err
}

// fsync makes a change survive a power failure, or says in its answer that it may not: it cannot be
// undone any more.
func (s *Server) fsync(answer *api.Changed) {
	if err := s.file.fsync(); err != nil {
		answer.Warning = err.Error()
		s.log.Error("a change may not survive a power failure", "err", err)
	}
}

// publish puts a staged state into force. With an error the old one still is.
func (s *Server) publish(st *state, act, reason string) (api.Changed, error) {
	if err := s.file.publish(); err != nil {
		s.file.discard()
		return api.Changed{}, err
	}
	answer := s.activate(st, act, reason)
	s.log.Info("changed", "act", act, "version", answer.Version, "routes", answer.Routes,
		"dropped", len(answer.Dropped), "reason", reason)
	return answer, nil
}

// activate makes a validated state the one in force.
func (s *Server) activate(st *state, act, reason string) api.Changed {
	id := st.planID()
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.rib.Routes()
	dropped, err := st.activate(s.rib)
	if err != nil {
		panic(fmt.Sprintf("manager: a running configuration that was found valid is not: %v", err))
	}
	for _, d := range dropped {
		s.sessions.drop(d)
	}
	routes, gone := difference(before, s.rib.Routes())
	s.state = *st
	s.changed(routes, gone, nil, api.Entry{Act: act, By: byOperator, Reason: reason})
	s.planVersion, s.planID = s.version, id
	answer := api.Changed{Schema: api.Schema, Version: s.version, Routes: len(routes)}
	for _, d := range dropped {
		answer.Dropped = append(answer.Dropped, d.Change)
	}
	return answer
}

// difference returns the routes of after that before lacks, and whether before has destinations
// that after lacks. Both are sorted by destination.
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

// SetPlan replaces the node's plan, and with it the operator's pairs. Programs keep what they ask
// for, as far as p can fulfil it. The error, which is plan.ErrInvalid or one of the state file's,
// has changed nothing.
func (s *Server) SetPlan(p *plan.Plan, reason string) (api.Changed, error) {
	return s.exclusive(func() (api.Changed, error) { return s.setPlan(p, reason, condition{}) })
}

func (s *Server) setPlan(p *plan.Plan, reason string, c condition) (api.Changed, error) {
	if err := checkNetwork(p); err != nil {
		return api.Changed{}, err
	}
	st, err := s.next(runningConfig{Plan: &api.Plan{Plan: *p}, Reason: reason}, c)
	if err != nil {
		return api.Changed{}, err
	}
	return s.set(st, actPlan, reason)
}

// planRequest is the body of PUT /v1/table: JSON, or a plan's file.
type planRequest struct {
	reason
	Plan *api.Plan `json:"plan"`
}

func (q *planRequest) read(r *http.Request) error {
	if !strings.Contains(r.Header.Get("Content-Type"), "yaml") {
		return readBody(r, q)
	}
	p, err := plan.Parse("body", r.Body)
	if err != nil {
		if isTooLarge(err) {
			return bodyError(err)
		}
		return err
	}
	q.Plan = &api.Plan{Plan: *p}
	return nil
}

func (s *Server) putTable(r *http.Request, q *planRequest) (any, error) {
	if q.Plan == nil {
		return nil, badRequest("no plan (want {\"plan\":{...}}, or a plan's file with Content-Type: application/yaml)")
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	return s.alone(r, func(c condition) (api.Changed, error) { return s.setPlan(&q.Plan.Plan, q.Reason, c) })
}

// pairsRequest is the body of PATCH /v1/pairs.
type pairsRequest struct {
	reason
	Pairs []namedChange `json:"pairs"`
}

// namedChange is an api.Change whose nodes are named as in a plan: by number, name or address.
type namedChange struct {
	A   string        `json:"a"`
	B   string        `json:"b"`
	VID transport.VID `json:"vid"`
}

// patchPairs lays the operator's pairs over the plan. Those of other nodes are ignored.
func (s *Server) patchPairs(r *http.Request, q *pairsRequest) (any, error) {
	if len(q.Pairs) == 0 {
		return nil, badRequest("no pairs (want {\"pairs\":[{\"a\":NODE,\"b\":NODE,\"vid\":N},...]}, " +
			"NODE a number, name or address of the plan's)")
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	return s.alone(r, func(c condition) (api.Changed, error) {
		changes, err := resolve(q.Pairs, s.Plan())
		if err != nil {
			return api.Changed{}, err
		}
		config, ignored, err := s.withPairs(changes)
		if err != nil {
			return api.Changed{}, err
		}
		config.Reason = q.Reason
		st, err := s.next(config, c)
		if err != nil {
			return api.Changed{}, err
		}
		st.Undo = s.state.Undo // the plan is still that of the group change
		answer, err := s.set(st, actPairs, q.Reason)
		answer.Ignored = ignored
		return answer, err
	})
}

// resolve finds the addresses of the nodes that changes name.
func resolve(named []namedChange, p *plan.Plan) ([]api.Change, error) {
	if p == nil {
		return nil, fmt.Errorf("%w (set one first: PUT /v1/table, or rawlane route load)", api.ErrNoPlan)
	}
	changes := make([]api.Change, len(named))
	for i, n := range named {
		changes[i].VID = n.VID
		for _, end := range []struct {
			name string
			mac  *transport.MAC
		}{{n.A, &changes[i].A}, {n.B, &changes[i].B}} {
			node, err := p.FindNode(end.name)
			if err != nil {
				return nil, fmt.Errorf("pairs[%d]: %w", i, err)
			}
			*end.mac = p.Nodes[node].MAC
		}
	}
	return changes, nil
}

// withPairs returns the running configuration with changes over it.
func (s *Server) withPairs(changes []api.Change) (config runningConfig, ignored int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scratch := rib.New(s.cfg.MAC)
	if _, err := s.state.activate(scratch); err != nil {
		return config, 0, err
	}
	if _, ignored, err = scratch.Add(rib.Operator, uint64(s.version)+1, changes); err != nil {
		return config, 0, err
	}
	return runningConfig{Plan: s.state.Plan, ID: s.state.ID, Pairs: scratch.Of(rib.Operator)}, ignored, nil
}

// postReset goes back to the plan: what the operator and programs have asked for is taken back. A
// failover's overrides stay, as the paths are still down.
func (s *Server) postReset(r *http.Request, q *reason) (any, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return s.alone(r, func(c condition) (api.Changed, error) {
		s.mu.Lock()
		config := runningConfig{Plan: s.state.Plan, ID: s.state.ID, Reason: q.Reason}
		s.mu.Unlock()
		if config.Plan == nil {
			return api.Changed{}, fmt.Errorf("%w: nothing to go back to", api.ErrNoPlan)
		}
		st, err := s.next(config, c)
		if err != nil {
			return api.Changed{}, err
		}
		answer, err := s.set(st, actReset, q.Reason)
		if err == nil {
			s.resetPrograms(&answer, q.Reason)
		}
		return answer, err
	})
}

// resetPrograms takes back what programs have asked for, and tells them.
func (s *Server) resetPrograms(answer *api.Changed, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions.all {
		for _, c := range s.rib.Of(sess.number) {
			s.sessions.drop(c)
		}
		if routes := s.rib.Withdraw(sess.number); len(routes) > 0 {
			s.changed(routes, false, nil, api.Entry{Act: actReset, By: byOperator, Reason: reason})
			answer.Routes += len(routes)
			answer.Version = s.version
		}
	}
}

// postRollback goes back to the setting before the one in force.
func (s *Server) postRollback(r *http.Request, q *reason) (any, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return s.alone(r, func(c condition) (api.Changed, error) {
		st, err := s.back(c, func(*runningConfig) bool { return false })
		if err != nil {
			return api.Changed{}, err
		}
		if q.Reason != "" {
			st.Reason = q.Reason
		}
		return s.set(st, actRollback, st.Reason)
	})
}
