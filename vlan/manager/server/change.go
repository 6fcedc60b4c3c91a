package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
	"github.com/rawlane/rawlane/vlan/plan"
)

// A change of the running configuration has four steps: next makes the state that it leads to and
// validates it; the state file stages that beside the old one; publish puts it in the old one's
// place and activates it; fsync makes it survive a power failure.

// configure changes the running configuration in all steps, unless a change is prepared or the
// request, if there is one, has a condition that does not hold. The log has the new configuration's
// reason.
func (s *Server) configure(r *http.Request, act string, edit func(*state) error) (api.Changed, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if p := s.pending(); p != nil {
		return api.Changed{}, errBusy(p)
	}
	st, err := s.next(r, edit)
	if err != nil {
		return api.Changed{}, err
	}
	return s.set(st, act, st.Reason, callerOf(r))
}

// next returns a copy of the state, edited and validated. The caller holds change.
func (s *Server) next(r *http.Request, edit func(*state) error) (*state, error) {
	if err := s.checkCondition(r); err != nil {
		return nil, err
	}
	st := s.state
	if err := edit(&st); err != nil {
		return nil, err
	}
	if r != nil {
		st.From = callerOf(r)
	}
	if _, err := st.activate(rib.New(s.cfg.MAC)); err != nil {
		return nil, err
	}
	return &st, nil
}

// checkCondition returns an error that is api.ErrChanged if the running configuration has changed
// since the version of If-Match. Programs' changes do not count: they come and go by themselves.
func (s *Server) checkCondition(r *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return api.ErrClosed
	}
	text := ""
	if r != nil {
		text = r.Header.Get("If-Match")
	}
	if text == "" || text == "*" {
		return nil
	}
	var v api.Version
	if err := v.UnmarshalText([]byte(strings.Trim(text, `"`))); err != nil {
		return fmt.Errorf("If-Match: %w", err)
	}
	if s.planVersion <= v && v <= s.version {
		return nil
	}
	e, _ := api.Refusal(fmt.Errorf("%w: its version is %v, not %v (read it again)", api.ErrChanged, s.planVersion, v))
	e.Version = s.version
	return e
}

// set stages, publishes and syncs a state.
func (s *Server) set(st *state, act, reason, from string) (api.Changed, error) {
	if err := s.file.stage(st); err != nil {
		return api.Changed{}, notMade(err)
	}
	answer, err := s.publish(st, act, reason, from)
	if err == nil {
		s.fsync(&answer)
	}
	return answer, err
}

// notMade says of an error of the disk what it means for a change.
func notMade(err error) error { return fmt.Errorf("%w (the change was not made)", err) }

// fsync makes a change survive a power failure, or says in its answer that it may not: it cannot be
// undone any more.
func (s *Server) fsync(answer *api.Changed) {
	if err := s.file.fsync(); err != nil {
		answer.Warning = err.Error()
		s.log.Error("a change may not survive a power failure", "err", err)
	}
}

// publish puts a staged state into force. With an error the old one still is.
func (s *Server) publish(st *state, act, reason, from string) (api.Changed, error) {
	if err := s.file.publish(); err != nil {
		return api.Changed{}, notMade(err)
	}
	answer := s.activate(st, act, reason, from)
	s.log.Info("changed", "act", act, "version", answer.Version, "routes", answer.Routes,
		"dropped", len(answer.Dropped), "reason", reason, "from", from)
	return answer, nil
}

// activate makes a validated state the one in force.
func (s *Server) activate(st *state, act, reason, from string) api.Changed {
	id := st.planID()
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.rib.Routes()
	dropped, err := st.activate(s.rib)
	if err != nil {
		panic(fmt.Sprintf("manager: a running configuration that was found valid is not: %v", err))
	}
	s.keepOverrides() // those that the state cannot fulfil are gone
	routes, gone := difference(before, s.rib.Routes())
	s.state, s.failedThen = *st, s.writesFailed
	s.announced = nil // it is st, if there was one
	answer := api.Changed{Schema: api.Schema, Routes: len(routes)}
	for _, c := range dropped {
		s.sessions.drop(c)
		answer.Dropped = append(answer.Dropped, c.Change)
	}
	s.changed(routes, gone, nil, api.Entry{Act: act, By: byOperator, From: from, Reason: reason})
	s.planVersion, s.planID = s.version, id
	if act == actReset {
		answer.Routes += s.resetPrograms(reason, from)
	}
	answer.Version = s.version
	return answer
}

// resetPrograms takes back what programs have asked for, tells them, and returns how many routes
// that changes. The caller holds mu.
func (s *Server) resetPrograms(reason, from string) (changed int) {
	for _, sess := range s.sessions.all {
		for _, c := range s.rib.Of(sess.number) {
			s.sessions.drop(c)
		}
		if routes := s.rib.Withdraw(sess.number); len(routes) > 0 {
			s.changed(routes, false, nil, api.Entry{Act: actReset, By: byOperator, From: from, Reason: reason})
			changed += len(routes)
		}
	}
	return changed
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
	return s.setPlan(nil, &api.Plan{Plan: *p}, reason)
}

func (s *Server) setPlan(r *http.Request, p *api.Plan, reason string) (api.Changed, error) {
	if err := checkNetwork(&p.Plan); err != nil {
		return api.Changed{}, err
	}
	return s.configure(r, actPlan, func(st *state) error {
		st.push(runningConfig{Plan: p, Reason: reason})
		return nil
	})
}

// planRequest is the body of PUT /v1/table.
type planRequest struct {
	reason
	Plan *api.Plan `json:"plan"`
}

func (s *Server) putTable(r *http.Request, q *planRequest) (any, error) {
	if q.Plan == nil {
		return nil, badRequest("no plan (want {\"plan\":{...}}; rawlane route load FILE gives it a plan's file)")
	}
	return s.setPlan(r, q.Plan, q.Reason)
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
	ignored := 0
	answer, err := s.configure(r, actPairs, func(st *state) error {
		changes, err := resolve(q.Pairs, st.Plan)
		if err != nil {
			return err
		}
		over := rib.New(s.cfg.MAC)
		if _, err := st.activate(over); err != nil {
			return err
		}
		if _, ignored, err = over.Add(rib.Operator, 0, changes); err != nil {
			return err
		}
		since := s.nextVersion() // not of changes that are refused
		if _, _, err = over.Add(rib.Operator, uint64(since), changes); err != nil {
			return err
		}
		st.pushOver(over.Of(rib.Operator), q.Reason)
		return nil
	})
	answer.Ignored = ignored
	return answer, err
}

// nextVersion takes the next version for pairs of the operator's: what programs ask for while the
// pairs are written to the disk gets a later one, and lies over them.
func (s *Server) nextVersion() api.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	return s.version
}

// resolve finds the addresses of the nodes that changes name.
func resolve(named []namedChange, p *api.Plan) ([]api.Change, error) {
	if p == nil {
		return nil, fmt.Errorf("%w (set one first: PUT /v1/table, or rawlane route load)", api.ErrNoPlan)
	}
	changes := make([]api.Change, len(named))
	for i, n := range named {
		a, errA := p.FindNode(n.A)
		b, errB := p.FindNode(n.B)
		if err := cmp.Or(errA, errB); err != nil {
			return nil, fmt.Errorf("pairs[%d]: %w", i, err)
		}
		changes[i] = api.Change{A: p.Nodes[a].MAC, B: p.Nodes[b].MAC, VID: n.VID}
	}
	return changes, nil
}

// postReset goes back to the plan: what the operator and programs have asked for is taken back. A
// failover's overrides stay, as the paths are still down.
func (s *Server) postReset(r *http.Request, q *reason) (any, error) {
	return s.configure(r, actReset, func(st *state) error {
		if st.Plan == nil {
			return fmt.Errorf("%w: nothing to go back to", api.ErrNoPlan)
		}
		st.pushOver(nil, q.Reason)
		return nil
	})
}

// postRollback goes back to the setting before the one in force.
func (s *Server) postRollback(r *http.Request, q *reason) (any, error) {
	return s.configure(r, actRollback, func(st *state) error {
		err := st.pop(func(*runningConfig) bool { return false })
		st.Reason = cmp.Or(q.Reason, st.Reason)
		return err
	})
}
