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
	s.mu.Lock() // without change, which is held while a disk is slow
	defer s.mu.Unlock()
	t := &api.Table{
		Schema: api.Schema, Version: s.version, MAC: s.cfg.MAC,
		PlanVersion: s.planVersion, PlanID: s.planID, PlanReason: s.state.Reason,
		PlanFrom: s.state.From, Plan: s.state.Plan,
		Pairs: []api.Pair{}, Routes: api.RoutesOf(s.rib.Routes()),
		Sessions: []api.Program{},
	}
	if p := s.announced; p != nil && !isOver(p, time.Now()) {
		t.Prepared = p
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
			api.Program{Number: uint64(sess.number), Program: sess.program, From: sess.from, Applied: sess.applied})
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
		past := api.Past{Until: p.Until, ID: p.ID, Reason: p.Reason, From: p.From, Plan: p.Plan}
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
	return api.Log{Schema: api.Schema, Entries: append([]api.Entry{}, s.changes.all()...)}, nil
}

func (s *Server) getVersion(*http.Request, *struct{}) (any, error) {
	return api.About{Schema: api.Schema, Program: s.cfg.Program, MAC: s.cfg.MAC, Interface: s.cfg.Interface,
		Started: s.started, PID: os.Getpid()}, nil
}

func (s *Server) getHealth(*http.Request, *struct{}) (any, error) {
	s.looking.Lock() // strangers ask, too, and each look takes a copy of all paths
	failover, hasFailover := s.paths()
	byDefault, _ := s.VIDs(transport.Broadcast)
	sum := summaryOf(failover.Paths, byDefault)
	failover.Paths = nil
	s.looking.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := api.Health{
		Schema: api.Schema, Version: s.version, HasPlan: s.rib.Plan() != nil, PlanID: s.planID,
		Sessions: len(s.sessions.all), UptimeS: int64(time.Since(s.started).Seconds()), Started: s.started,
		Failover: failover.Watching, PathsDown: sum.down, PathsRestoring: sum.restoring,
		Unreachable:     sum.unreachable[:min(len(sum.unreachable), api.MaxShown)],
		MissedByDefault: sum.missed[:min(len(sum.missed), api.MaxShown)],
	}
	switch {
	case s.closed:
		h.Why = "it is ending"
	case s.diskError != nil:
		h.Why = s.diskError.Error()
	case hasFailover && failover.Error != "":
		h.Why = "failover: " + failover.Error
	}
	h.OK = h.Why == ""
	return h, nil
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

const (
	// reportTimeout bounds the wait of an answer about counters for the programs' reports.
	reportTimeout = 200 * time.Millisecond
	// askInterval is the least time between two questions to the programs for a scraper's sake: a
	// report of a program that knows many nodes takes 100 KiB.
	askInterval = time.Second
)

// Counters returns what this node's programs have sent by their routes, each since its start, for
// those that the manager has known since it started. It asks them, and waits a moment for
// their reports. Source: VFREC §4.1 (3).
func (s *Server) Counters(ctx context.Context) api.Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ask(ctx)
}

// recentCounters is Counters, or what the programs have told if they were asked just now: to sum up
// the counters of many takes long, and scrapers may be strangers.
func (s *Server) recentCounters(ctx context.Context) api.Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.askedAt) < askInterval {
		if s.told == nil { // they have been asked for the first time, and are answering
			return s.counters(s.sessions.asked)
		}
		return *s.told
	}
	return s.ask(ctx)
}

// ask asks the programs for reports, and returns the counters. The caller holds mu.
func (s *Server) ask(ctx context.Context) api.Counters {
	s.askedAt = time.Now()
	s.sessions.asked++
	number := s.sessions.asked
	for _, sess := range s.sessions.all {
		sess.next.Report = number
		sess.wakeUp()
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	s.await(ctx, func() bool { return s.sessions.silent(number) == 0 })
	told := s.counters(number)
	s.told = &told
	return told
}

// counters are those of the latest reports; number is that of the report asked for. The caller
// holds mu.
func (s *Server) counters(number uint64) api.Counters {
	sums := s.sessions.total().sorted()
	answer := api.Counters{Schema: api.Schema, Version: s.version, Silent: s.sessions.silent(number),
		Nodes: []api.Sent{}, VIDs: append([]vlan.Sent{}, vlan.PerVID(sums)...)}
	names := s.names()
	for _, c := range sums {
		answer.Nodes = append(answer.Nodes,
			api.Sent{Dst: c.Dst, Name: names[c.Dst], VID: c.VID, Frames: c.Frames, Bytes: c.Bytes})
	}
	return answer
}
