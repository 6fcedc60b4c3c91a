package manager

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/claims"
)

func (s *Server) getTable(*http.Request) (any, error) {
	s.change.Lock() // a prepared change is among what is told
	defer s.change.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Table{Schema: Schema, Version: s.version, PlanVersion: s.planVersion, PlanID: s.planID, PlanReason: s.state.Reason, MAC: s.cfg.MAC,
		Plan: s.state.Plan, Pairs: []Pair{}, Routes: routesJSON(s.book.Routes()), Sessions: []Program{}, Prepared: s.prepared.describe()}
	if p := s.book.Plan(); p != nil {
		if n, ok := p.NodeOf(s.cfg.MAC); ok {
			t.Name = p.Nodes[n].Name
		}
	}
	for _, w := range s.book.Wishes() {
		t.Pairs = append(t.Pairs, Pair{s.cfg.MAC, w.Peer, w.VID, by(w), w.Reason, w.Covered})
	}
	for sub := range s.sessions.all {
		t.Sessions = append(t.Sessions, Program{uint64(sub.owner), sub.program, sub.applied})
	}
	slices.SortFunc(t.Sessions, func(a, b Program) int { return cmp.Compare(a.Number, b.Number) })
	return t, nil
}

// by says whose wish one is.
func by(w claims.Wish) string {
	switch {
	case w.Forced:
		return actForce
	case w.Owner == claims.Operator:
		return byOperator
	}
	return fmt.Sprintf("session %d", w.Owner)
}

// Past is a setting that was in force before.
type Past struct {
	Until  time.Time `json:"until"`
	ID     string    `json:"id,omitempty"` // of the group change that had brought it
	Reason string    `json:"reason,omitempty"`
	Plan   *Plan     `json:"plan"`
	Pairs  []Change  `json:"pairs,omitempty"`
}

// History is a manager's answer about what was in force before.
type History struct {
	Schema int    `json:"schema"`
	Past   []Past `json:"past"` // the latest last: what a rollback goes back to
}

func (s *Server) getHistory(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := History{Schema: Schema, Past: []Past{}}
	for _, p := range s.state.Past {
		h.Past = append(h.Past, Past{p.Until, p.ID, p.Reason, p.Plan, changesOf(p.Pairs)})
	}
	return h, nil
}

// Log is a manager's answer about the latest changes.
type Log struct {
	Schema  int     `json:"schema"`
	Entries []Entry `json:"entries"` // the latest last
}

func (s *Server) getLog(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Log{Schema, s.journal.list()}, nil
}

func (s *Server) getNIC(*http.Request) (any, error) { return s.NIC() }

// NIC tells of the node's network interface as it is now.
func (s *Server) NIC() (NIC, error) {
	n, err := nicOf(s.cfg.Interface, s.cfg.MAC)
	if err != nil {
		return NIC{}, fmt.Errorf("nic %s: %w", s.cfg.Interface, err)
	}
	return n, nil
}

// Health is a manager's answer about whether it does its work.
type Health struct {
	Schema   int    `json:"schema"`
	OK       bool   `json:"ok"`
	Version  uint64 `json:"version"`
	HasPlan  bool   `json:"has_plan"`
	PlanID   string `json:"plan_id,omitempty"` // see the function of that name
	Sessions int    `json:"sessions"`
	UptimeS  int64  `json:"uptime_s"`
}

func (s *Server) getHealth(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Health{Schema, !s.closed, s.version, s.book.Plan() != nil, s.planID, len(s.sessions.all), int64(time.Since(s.started).Seconds())}, nil
}

func (s *Server) getCounters(r *http.Request) (any, error) { return s.Counters(r.Context()), nil }

// Counters returns what this node's programs have sent by their routes since the manager started. It asks them, and waits a
// moment for their answers. Source: VFREC §4.1 (3).
func (s *Server) Counters(ctx context.Context) Counters {
	asked := s.askAll()
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	s.await(ctx, func() bool { return s.silent(asked) == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := Counters{Schema: Schema, Version: s.version, Silent: s.silent(asked), Nodes: []Count{}, VIDs: []Count{}}
	sums := s.sessions.total().sorted()
	names := make(map[transport.MAC]string)
	if p := s.book.Plan(); p != nil {
		for _, n := range p.Nodes {
			names[n.MAC] = n.Name
		}
	}
	for _, c := range sums {
		answer.Nodes = append(answer.Nodes, Count{&c.Dst, names[c.Dst], c.VID, c.Frames, c.Bytes})
	}
	for _, c := range vlan.PerVID(sums) {
		answer.VIDs = append(answer.VIDs, Count{VID: c.VID, Frames: c.Frames, Bytes: c.Bytes})
	}
	return answer
}

// askAll asks all sessions for a report, and returns its number.
func (s *Server) askAll() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.asked++
	for sub := range s.sessions.all {
		sub.ask = s.sessions.asked
		sub.ring()
	}
	return s.sessions.asked
}

// silent counts the sessions that have not sent a report, or a later one. The caller holds mu.
func (s *Server) silent(report uint64) (n int) {
	for sub := range s.sessions.all {
		if sub.reported < report {
			n++
		}
	}
	return n
}

// sorted returns the counts as a list, sorted by destination, then VID.
func (c counts) sorted() []vlan.Sent {
	list := make([]vlan.Sent, 0, len(c))
	for k, v := range c {
		list = append(list, vlan.Sent{Dst: k.dst, VID: k.vid, Frames: v.frames, Bytes: v.bytes})
	}
	slices.SortFunc(list, func(a, b vlan.Sent) int { return cmp.Or(a.Dst.Compare(b.Dst), cmp.Compare(a.VID, b.VID)) })
	return list
}
