package barrier

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// Presence is whether a member has entered a barrier.
type Presence uint8

// The answers to a status request.
const (
	NoAnswer   Presence = Presence(engine.NoAnswer)   // none yet
	Entered    Presence = Presence(engine.Entered)    // the member has entered the barrier
	NotEntered Presence = Presence(engine.NotEntered) // it has not
	NoGroup    Presence = Presence(engine.NoGroup)    // it has not made the group, or has closed it
)

// String names p.
func (p Presence) String() string { return engine.Presence(p).String() }

// MemberStatus is a member's answer to a status request.
type MemberStatus struct {
	Node     mcd.NodeID
	Presence Presence
}

// statusInterval is how long answers are awaited before the request is repeated.
const statusInterval = 5 * time.Millisecond

// Status asks all members whether they have entered the barrier of that number that this node
// entered last, or the first one if it has entered none, and returns their answers by rank. It
// returns when all have answered or ctx ends; then the others have NoAnswer. ErrClosed: the group
// or the endpoint is closed.
func (g *Group) Status(ctx context.Context, number uint8) ([]MemberStatus, error) {
	var q *engine.Query
	defer func() { g.endQuery(q) }()
	for {
		var err error
		if q, err = g.query(number, q); err != nil {
			return nil, err
		}
		err = g.service.await(ctx, statusInterval, func() bool { return !slices.Contains(q.Answers, engine.NoAnswer) })
		switch {
		case errors.Is(err, mcd.ErrClosed):
			return nil, ErrClosed
		case err == nil || ctx.Err() != nil:
			return g.answers(q), nil
		}
	}
}

// query makes a query, or makes it again.
func (g *Group) query(number uint8, again *engine.Query) (q *engine.Query, err error) {
	s := g.service
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case g.closed:
		return again, ErrClosed
	case again != nil:
		q, s.out = again, g.all.engine.RepeatQuery(again, s.out[:0])
	default:
		q, s.out = g.all.engine.BeginQuery(number, s.out[:0])
	}
	g.all.flush()
	return q, nil
}

func (g *Group) endQuery(q *engine.Query) {
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	if q != nil {
		g.all.engine.EndQuery(q)
	}
}

func (g *Group) answers(q *engine.Query) (all []MemberStatus) {
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	for rank, p := range q.Answers {
		all = append(all, MemberStatus{g.all.nodes[rank], Presence(p)})
	}
	return all
}

// report is how far the report of a late barrier is.
type report uint8

const (
	inTime          report = iota
	statusRequested        // the answers are looked at once they had time to come
	reported
)

// reportLate reports barriers that take longer than Late, and the members that have not entered.
// The caller holds Service.mu.
func (c *memberSet) reportLate(now monotime.Time) {
	late := c.group.cfg.Late
	if late == 0 {
		return
	}
	for i := range c.entries {
		e, number := c.entries[i].Load(), uint8(i)
		if e == nil || e.generation.Load() == none || e.done.Done() {
			continue
		}
		switch waited := now.Sub(e.entered); {
		case e.report == statusRequested && now.Sub(e.asked) >= statusInterval:
			e.report = reported
			c.noteLate(number, waited, e.query.Answers)
			c.endReport(e)
		case e.report == inTime && waited >= late:
			e.report, e.asked = statusRequested, now
			e.query, c.service.out = c.engine.BeginQuery(number, c.service.out[:0])
			c.flush()
		}
	}
}

// endReport ends the query of a report, if there is one. The caller holds Service.mu.
func (c *memberSet) endReport(e *entry) {
	if e.query != nil {
		c.engine.EndQuery(e.query)
		e.query = nil
	}
}

// noteLate notes the attributes of a log entry: a barrier, and the members that have not entered.
func (c *memberSet) noteLate(number uint8, waited time.Duration, answers []engine.Presence) {
	var notEntered, noAnswer []mcd.NodeID
	for rank, p := range answers {
		switch p {
		case engine.NotEntered, engine.NoGroup:
			notEntered = append(notEntered, c.nodes[rank])
		case engine.NoAnswer:
			noAnswer = append(noAnswer, c.nodes[rank])
		}
	}
	_, generation := c.engine.State(number)
	c.service.late = append(c.service.late, []any{
		"number", number, "generation", generation, "waited", waited,
		"not_entered", notEntered, "no_answer", noAnswer,
	})
}
