package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

func (s *Server) getTable(*http.Request, *struct{}) (any, error) {
	s.change.Lock() // for the prepared change
	defer s.change.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &api.Table{
		Schema: api.Schema, Version: s.version, MAC: s.cfg.MAC,
		PlanVersion: s.planVersion, PlanID: s.planID, PlanReason: s.state.Reason, Plan: s.state.Plan,
		Pairs: []api.Pair{}, Routes: api.RoutesOf(s.rib.Routes()),
		Sessions: []api.Program{},
	}
	if p := s.prepared; p != nil {
		t.Prepared = &p.Prepared
	}
	if p := s.rib.Plan(); p != nil {
		if n, ok := p.NodeOf(s.cfg.MAC); ok {
			t.Name = p.Nodes[n].Name
		}
	}
	over := s.rib.Candidates()
	for i, c := range over {
		isCovered := i > 0 && over[i-1].B == c.B
		t.Pairs = append(t.Pairs, api.Pair{Change: c.Change, By: by(c.Source), Reason: c.Reason, Covered: isCovered})
	}
	for _, sess := range s.sessions.all {
		t.Sessions = append(t.Sessions,
			api.Program{Number: uint64(sess.number), Program: sess.program, Applied: sess.applied})
	}
	slices.SortFunc(t.Sessions, func(a, b api.Program) int { return cmp.Compare(a.Number, b.Number) })
	return t, nil
}

// by names a source.
func by(source rib.Source) string {
	switch source {
	case rib.Failover:
		return actOverride
	case rib.Operator:
		return byOperator
	}
	return fmt.Sprintf("session %d", source)
}

func (s *Server) getHistory(*http.Request, *struct{}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := api.History{Schema: api.Schema, Past: []api.Past{}}
	for _, p := range s.state.Past {
		past := api.Past{Until: p.Until, ID: p.ID, Reason: p.Reason, Plan: p.Plan}
		for _, c := range p.Pairs {
			past.Pairs = append(past.Pairs, c.Change)
		}
		h.Past = append(h.Past, past)
	}
	return h, nil
}

func (s *Server) getLog(*http.Request, *struct{}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return api.Log{Schema: api.Schema, Entries: append([]api.Entry{}, s.changes...)}, nil
}

func (s *Server) getVersion(*http.Request, *struct{}) (any, error) {
	return api.About{Schema: api.Schema, Program: s.cfg.Program, MAC: s.cfg.MAC, Interface: s.cfg.Interface,
		Started: s.started, PID: os.Getpid()}, nil
}

func (s *Server) getHealth(*http.Request, *struct{}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return api.Health{
		Schema: api.Schema, OK: !s.closed, Version: s.version, HasPlan: s.rib.Plan() != nil, PlanID: s.planID,
		Sessions: len(s.sessions.all), UptimeS: int64(time.Since(s.started).Seconds()),
	}, nil
}

func (s *Server) getNIC(*http.Request, *struct{}) (any, error) {
	n, err := nicOf(s.cfg.Interface, s.cfg.MAC)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.cfg.Interface, err)
	}
	return n, nil
}

func (s *Server) getCounters(r *http.Request, _ *struct{}) (any, error) {
	return s.Counters(r.Context()), nil
}

// reportTimeout bounds the wait of an answer about counters for the programs' reports.
const reportTimeout = 200 * time.Millisecond

// Counters returns what this node's programs have sent by their routes since the manager started.
// It asks them, and waits a moment for their reports. Source: VFREC §4.1 (3).
func (s *Server) Counters(ctx context.Context) api.Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.asked++
	number := s.sessions.asked
	for _, sess := range s.sessions.all {
		sess.next.Report = number
		sess.wakeUp()
	}
	isSilent := func(sess *session) bool { return sess.reported < number }
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	s.await(ctx, func() bool { return s.sessions.count(isSilent) == 0 })
	sums := s.sessions.total().sorted()
	answer := api.Counters{Schema: api.Schema, Version: s.version, Silent: s.sessions.count(isSilent),
		Nodes: []api.Sent{}, VIDs: append([]vlan.Sent{}, vlan.PerVID(sums)...)}
	names := make(map[transport.MAC]string)
	if p := s.rib.Plan(); p != nil {
		for _, n := range p.Nodes {
			names[n.MAC] = n.Name
		}
	}
	for _, c := range sums {
		answer.Nodes = append(answer.Nodes,
			api.Sent{Dst: c.Dst, Name: names[c.Dst], VID: c.VID, Frames: c.Frames, Bytes: c.Bytes})
	}
	return answer
}
