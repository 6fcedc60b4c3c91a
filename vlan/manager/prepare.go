package manager

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// A change of several nodes' plans takes two steps at each. Prepared, it is validated and on the disk, beside the state in
// force; nothing keeps it from being carried out any more but the manager's death. Committed, it is one renaming and one swap away,
// so that the nodes' ends of a pair change within the time that a request takes.
//
//	state      event                   next       does
//	Idle       prepare, valid          Prepared   stages the state, starts the lease
//	Idle       prepare, not valid      Idle       refuses
//	Idle       commit of the last id   Idle       answers as it did: the answer was lost
//	Idle       commit of another id    Idle       refuses (lease)
//	Prepared   prepare of another id   Prepared   refuses (busy), as all other changes of the setting
//	Prepared   prepare of the same id  Prepared   anew, with a new lease
//	Prepared   commit                  Idle       publishes and swaps
//	Prepared   abort, lease over       Idle       discards
//	any        restart                 Idle       discards what is staged
//
// Programs change their own pairs meanwhile as they like.

// prepared is a change that waits to be committed. Guarded by Server.change.
type prepared struct {
	Prepared
	state *state
	lease *time.Timer
}

func (p *prepared) describe() *Prepared {
	if p == nil {
		return nil
	}
	return &p.Prepared
}

// prepareRequest is the body of POST /v1/prepare.
type prepareRequest struct {
	reason
	ID      string `json:"id"`
	LeaseMS int    `json:"lease_ms"`
	Plan    *Plan  `json:"plan"`
}

func (q *prepareRequest) check() error {
	switch {
	case q.ID == "" || len(q.ID) > 64:
		return badRequest("id: %q (want 1 to 64 bytes that no other change has)", q.ID)
	case q.Plan == nil:
		return badRequest("no plan (want {\"id\":ID,\"lease_ms\":N,\"plan\":{...}})")
	case q.LeaseMS < 1 || time.Duration(q.LeaseMS)*time.Millisecond > MaxLease:
		return badRequest("lease_ms: %d (want 1 to %d)", q.LeaseMS, MaxLease.Milliseconds())
	}
	return q.reason.check()
}

func (s *Server) postPrepare(r *http.Request) (any, error) {
	var req prepareRequest
	c, err := conditionOf(r)
	if err == nil {
		err = body(r, &req, false)
	}
	if err == nil {
		err = req.check()
	}
	if err == nil {
		err = checkNetwork(&req.Plan.Plan)
	}
	var p *Prepared
	if err == nil {
		p, err = s.prepare(&req, c)
	}
	if err != nil {
		return nil, fmt.Errorf("change: prepare: %w", err)
	}
	return p, nil
}

func (s *Server) prepare(q *prepareRequest, c condition) (*Prepared, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if p := s.prepared; p != nil && p.ID != q.ID {
		return nil, fmt.Errorf("%w: %q is prepared, and expires at %s if it is not committed (try again then)", ErrBusy, p.ID, p.Expires.Format(time.RFC3339Nano))
	}
	s.unprepare()
	st, err := s.plannedState(setting{Plan: q.Plan, ID: q.ID, Reason: q.Reason}, actPlan, c)
	if err != nil {
		return nil, err
	}
	if err := s.file.stage(st); err != nil {
		return nil, err
	}
	lease := time.Duration(q.LeaseMS) * time.Millisecond
	p := &prepared{Prepared: Prepared{ID: q.ID, Reason: q.Reason, Expires: time.Now().Add(lease), Changes: s.differences(q.Plan)}, state: st}
	p.lease = time.AfterFunc(lease, func() { s.expire(p) }) // stopped by unprepare
	s.prepared = p
	return p.describe(), nil
}

// differences counts the routes that a plan would change if nobody wished for anything else.
func (s *Server) differences(p *Plan) int {
	n, _ := p.NodeOf(s.cfg.MAC)
	s.mu.Lock()
	now := s.book.Routes()
	s.mu.Unlock()
	changed, _ := difference(now, p.Routes(n))
	return len(changed)
}

// unprepare discards what is prepared. The caller holds change.
func (s *Server) unprepare() {
	if s.prepared == nil {
		return
	}
	s.prepared.lease.Stop()
	s.prepared = nil
	s.file.discard()
}

// expire discards a prepared change whose lease is over.
func (s *Server) expire(p *prepared) {
	s.change.Lock()
	defer s.change.Unlock()
	if s.prepared != p {
		return // committed, aborted or prepared anew just then
	}
	s.unprepare()
	s.log.Warn("a prepared change was not committed in time", "id", p.ID)
}

// changeID is the body of POST /v1/commit and /v1/abort.
type changeID struct {
	ID string `json:"id"`
}

// Committed is a manager's answer to a commit.
type Committed struct {
	Changed
	// The change took place between AfterUS since the request was read and BeforeUS before this answer was written: with
	// the caller's own clock that bounds the moment.
	AfterUS  int64 `json:"after_us"`
	BeforeUS int64 `json:"before_us"`
	// Late is how many programs had not said yet that they send by the new routes.
	Late int `json:"late,omitempty"`
	// Again: it had been committed before.
	Again bool `json:"again,omitempty"`
}

func (s *Server) postCommit(r *http.Request) (any, error) {
	read := time.Now()
	var req changeID
	err := body(r, &req, false)
	var answer Committed
	if err == nil {
		answer, err = s.commit(r.Context(), req.ID, read)
	}
	if err != nil {
		return nil, fmt.Errorf("change: commit: %w", err)
	}
	return answer, nil
}

func (s *Server) commit(ctx context.Context, id string, read time.Time) (Committed, error) {
	answer, changing, err := s.commitNow(id)
	if err != nil || answer.Again {
		return answer, err
	}
	answer.AfterUS = changing.Sub(read).Microseconds()
	done := time.Now()
	s.mu.Lock()
	answer.Late = s.late(answer.Version)
	s.mu.Unlock()
	if answer.Late > 0 {
		ctx, cancel := context.WithTimeout(ctx, applyTimeout)
		defer cancel()
		s.await(ctx, func() bool { answer.Late = s.late(answer.Version); return answer.Late == 0 })
		done = time.Now()
	}
	s.settle(&answer.Changed)
	answer.BeforeUS = time.Since(done).Microseconds()
	return answer, nil
}

// commitNow puts the prepared change into force, and returns when it began to.
func (s *Server) commitNow(id string) (answer Committed, changing time.Time, err error) {
	s.change.Lock()
	defer s.change.Unlock()
	if s.prepared == nil || s.prepared.ID != id {
		s.mu.Lock()
		defer s.mu.Unlock()
		if id == "" || s.state.ID != id {
			return answer, changing, errLease(id)
		}
		return Committed{Changed: Changed{Schema: Schema, Version: s.version}, Again: true}, changing, nil
	}
	st := s.prepared.state
	s.prepared.lease.Stop()
	s.prepared = nil
	changing = time.Now()
	answer.Changed, err = s.publish(st, actPlan)
	return answer, changing, err
}

// late counts the programs that have not said that they send by a version. The caller holds mu.
func (s *Server) late(version uint64) (n int) {
	for sub := range s.sessions.all {
		if sub.due >= version && sub.applied < version {
			n++
		}
	}
	return n
}

func (s *Server) postAbort(r *http.Request) (any, error) {
	var req changeID
	if err := body(r, &req, false); err != nil {
		return nil, fmt.Errorf("change: abort: %w", err)
	}
	s.change.Lock()
	defer s.change.Unlock()
	if s.prepared != nil && s.prepared.ID == req.ID {
		s.unprepare()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Changed{Schema: Schema, Version: s.version}, nil
}
