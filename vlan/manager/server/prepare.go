package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/api"
)

// A change of several nodes' plans takes two steps on each. Prepared, it is validated and on the
// disk, beside the state in force: nothing but the manager's death can keep it from being carried
// out. Committed, it is one renaming and one exchange of routes away, so that the ends of a pair
// change within the time of a request.
//
//	state      event                   next       does
//	Idle       prepare, valid          Prepared   stages the state, starts the lease
//	Idle       prepare, not valid      Idle       refuses
//	Idle       commit of the last id   Idle       answers as before: the answer was lost
//	Idle       commit of another id    Idle       refuses (lease)
//	Idle       abort of the last id    Idle       goes back to the state before the commit
//	any        prepare, id was aborted same       refuses (lease): it comes behind its abort
//	Prepared   prepare of another id   Prepared   refuses (busy), as all other changes
//	Prepared   prepare of the same id  Prepared   anew, with a new lease
//	Prepared   commit                  Idle       publishes and activates
//	Prepared   abort, lease over       Idle       discards
//	any        restart                 Idle       discards what is staged
//
// Programs change their own pairs meanwhile as they like.

const (
	// maxLease bounds the time that a prepared change may keep others waiting.
	maxLease = time.Minute
	// maxAborted bounds the aborted changes that are known: while a request to prepare, given up by
	// its client, is under way yet, so many others may be aborted.
	maxAborted = 64
)

// prepared is a change that waits for its commit. Guarded by Server.change.
type prepared struct {
	api.Prepared
	state *state
	lease *time.Timer
}

// errBusy says which change is in the way.
func errBusy(p *prepared) error {
	return fmt.Errorf("%w: %q is prepared, and expires at %s if it is not committed (try again then)",
		api.ErrBusy, p.ID, p.Expires.Format(time.RFC3339Nano))
}

func checkPrepare(q *api.PrepareRequest) error {
	switch {
	case q.ID == "" || len(q.ID) > maxID:
		return badRequest("id: %q (want 1 to %d bytes that no other change has)", q.ID, maxID)
	case (q.Plan == nil) != q.Rollback:
		return badRequest("no plan, or a plan and rollback " +
			"(want {\"id\":ID,\"lease_ms\":N,\"plan\":{...}} or \"rollback\":true)")
	case q.LeaseMS < 1 || int64(q.LeaseMS) > maxLease.Milliseconds():
		return badRequest("lease_ms: %d (want 1 to %d)", q.LeaseMS, maxLease.Milliseconds())
	}
	if err := checkText("id", q.ID, maxID); err != nil {
		return err
	}
	if q.Plan != nil {
		if err := checkNetwork(&q.Plan.Plan); err != nil {
			return err
		}
	}
	return checkText("reason", q.Reason, api.MaxReason)
}

func (s *Server) postPrepare(r *http.Request, q *api.PrepareRequest) (any, error) {
	if err := checkPrepare(q); err != nil {
		return nil, err
	}
	s.change.Lock()
	defer s.change.Unlock()
	if slices.Contains(s.aborted, q.ID) {
		return nil, fmt.Errorf("%w: %q was aborted (prepare it with another id)", api.ErrLease, q.ID)
	}
	if p := s.pending(); p != nil && p.ID != q.ID {
		return nil, errBusy(p)
	}
	s.discardPrepared()
	st, err := s.next(r, func(st *state) error { return st.prepare(q) })
	if err != nil {
		return nil, err
	}
	if err := s.file.stage(st); err != nil {
		return nil, notMade(err)
	}
	lease := time.Duration(q.LeaseMS) * time.Millisecond
	expires := time.Now().Add(lease)
	p := &prepared{api.Prepared{ID: q.ID, Reason: q.Reason, Expires: expires, Changes: s.differences(st.Plan)}, st, nil}
	p.lease = time.AfterFunc(lease, func() { s.expire(p) }) // stopped by discardPrepared
	s.setPrepared(p)
	return &p.Prepared, nil
}

// prepare makes the change that a request asks for.
func (s *state) prepare(q *api.PrepareRequest) error {
	if !q.Rollback {
		s.push(runningConfig{Plan: q.Plan, ID: q.ID, Reason: q.Reason})
		return nil
	}
	present := s.runningConfig
	err := s.pop(func(p *runningConfig) bool { return p.Plan == nil || p.Plan.Equal(present.Plan) })
	s.ID, s.Reason, s.Undo = q.ID, q.Reason, &present
	return err
}

// differences counts the routes that a plan would change if nothing lay over it.
func (s *Server) differences(p *api.Plan) int {
	n, _ := p.NodeOf(s.cfg.MAC)
	now, _ := s.Routes()
	changed, _ := difference(now, p.Routes(n))
	return len(changed)
}

// setPrepared notes which change is prepared, if one is. The caller holds change.
func (s *Server) setPrepared(p *prepared) {
	s.prepared = p
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announced = nil
	if p != nil {
		s.announced = &p.Prepared
	}
}

// discardPrepared forgets the prepared change. The caller holds change.
func (s *Server) discardPrepared() {
	if s.prepared == nil {
		return
	}
	s.prepared.lease.Stop()
	s.setPrepared(nil)
	s.file.discard()
}

// expire discards a prepared change whose lease is over.
func (s *Server) expire(p *prepared) {
	s.change.Lock()
	defer s.change.Unlock()
	if s.prepared != p {
		return // it was committed, aborted or prepared anew just then
	}
	s.forget(p)
}

// pending returns the prepared change, if there is one whose lease is not over. The caller holds
// change.
func (s *Server) pending() *prepared {
	if p := s.prepared; p != nil && isOver(&p.Prepared, time.Now()) {
		s.forget(p) // before its timer: this process, or the machine, has stood still
	}
	return s.prepared
}

// isOver reports whether the lease of a prepared change is over, by the monotonic clock or by the
// wall's, which goes on while the machine is suspended. A wall clock that is set forward ends it
// early: the commit is refused then, and the other nodes go back.
func isOver(p *api.Prepared, now time.Time) bool {
	return !now.Before(p.Expires) || !now.Round(0).Before(p.Expires.Round(0))
}

// forget discards a prepared change whose lease is over. The caller holds change.
func (s *Server) forget(p *prepared) {
	s.discardPrepared()
	s.mu.Lock()
	s.leasesExpired++
	s.mu.Unlock()
	s.log.Warn("a prepared change was not committed in time", "id", p.ID)
}

// changeID is the body of POST /v1/commit and /v1/abort.
type changeID struct {
	reason
	ID string `json:"id"`
}

func (s *Server) postCommit(r *http.Request, q *changeID) (any, error) {
	answer, err := s.commit(q.ID, callerOf(r))
	if err != nil || answer.Again {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), api.ConfirmWait)
	defer cancel()
	// A program is late that has not confirmed a version which changed its routes.
	isLate := func(sess *session) bool { return sess.due >= answer.Version && sess.applied < answer.Version }
	s.mu.Lock()
	s.await(ctx, func() bool { answer.Late = s.sessions.count(isLate); return answer.Late == 0 })
	s.mu.Unlock()
	s.fsync(&answer.Changed)
	return answer, nil
}

// commit puts the prepared change into force.
func (s *Server) commit(id, from string) (answer api.Committed, err error) {
	s.change.Lock()
	defer s.change.Unlock()
	if p := s.pending(); p != nil && p.ID == id {
		st := p.state
		p.lease.Stop()
		answer.Changed, err = s.publish(st, actPlan, st.Reason, from)
		s.setPrepared(nil)
		return answer, err
	}
	if id == "" || s.state.ID != id {
		return answer, fmt.Errorf("%w: %q: never, or its lease is over (prepare it again)", api.ErrLease, id)
	}
	return api.Committed{Changed: s.unchanged(), Again: true}, nil
}

// noteAborted has a later prepare of a change refused: a client that gives up a request to prepare
// aborts the change on another connection, which may be the faster one. The caller holds change.
func (s *Server) noteAborted(id string) {
	if id == "" || len(id) > maxID || slices.Contains(s.aborted, id) {
		return
	}
	s.aborted = append(s.aborted[max(0, len(s.aborted)+1-maxAborted):], id)
}

// postAbort discards a prepared change, or undoes a committed one. Of any other change there is
// nothing to abort: it is refused if it is prepared or committed later.
func (s *Server) postAbort(r *http.Request, q *changeID) (any, error) {
	s.change.Lock()
	defer s.change.Unlock()
	s.noteAborted(q.ID)
	if s.prepared != nil && s.prepared.ID == q.ID {
		s.discardPrepared()
	}
	if q.ID == "" || s.state.ID != q.ID {
		return s.unchanged(), nil
	}
	if p := s.pending(); p != nil {
		return nil, errBusy(p)
	}
	st, err := s.next(withoutCondition(r), (*state).undo)
	if err != nil {
		return nil, err
	}
	return s.set(st, actAbort, q.Reason, callerOf(r))
}

// withoutCondition returns a request whose If-Match does not count.
func withoutCondition(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Del("If-Match")
	return r
}

// undo goes back to the configuration before the group change in force.
func (s *state) undo() error {
	if s.Undo == nil {
		id := s.ID
		return s.pop(func(p *runningConfig) bool { return p.ID == id })
	}
	s.push(*s.Undo)
	return nil
}
