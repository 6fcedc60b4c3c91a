package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
)

// ApplyOptions of Apply. The zero value will do.
type ApplyOptions struct {
	// Reason is kept in the managers' logs.
	Reason string
	// Lease is how long a manager that has agreed waits for the others. 0: DefaultLease.
	Lease time.Duration
	// Partial allows a plan that changes the routes to nodes whose managers are not among those asked: their ends of the pairs
	// keep their VIDs, and the switches flood what is sent to them, until they are changed, too.
	Partial bool
}

// DefaultLease is far longer than the nodes of a cluster take to agree, and short enough to wait for after a coordinator's death.
const DefaultLease = 10 * time.Second

// Apply makes a plan that of all nodes, in two phases, so that both ends of each pair change at nearly the same time: when all managers
// have said that they can, and have written it down, all are told to, at once.
//
// If one refuses or cannot be asked, nothing changes anywhere. If one is lost in the second phase, the others go back to what they
// had; the lost one comes back with its old plan or with the new one, and to call Apply again mends it. The error names it, and Survey tells
// which one it has. The report says what became of each node in any case.
//
// Errors: ErrPlansDiffer if nodes may be left with another plan than the rest; a *GroupError that names the nodes which refused (and is what their errors are), ErrOneSided if a pair's other
// end is not among the managers, plan.ErrInvalid.
//
// Source: VFREC §4.3: while the ends disagree, frames flood.
func Apply(ctx context.Context, managers []*Client, plan *plan.Plan, o ApplyOptions) (*Report, error) {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	g := &group{plan: plan, options: o, id: rand.Text()}
	for _, c := range managers {
		g.nodes = append(g.nodes, &member{client: c})
	}
	if err := g.run(ctx); err != nil {
		return g.report(), fmt.Errorf("apply: %w", err)
	}
	return g.report(), nil
}

// group is one Apply.
type group struct {
	id      string
	plan    *plan.Plan
	options ApplyOptions
	nodes   []*member
}

// member is a node of a group.
type member struct {
	client *Client
	table  *Table // before
	state  NodeState
	answer Committed
	// The change took place between the two instants of the coordinator's clock, if it did.
	earliest, latest time.Time
	err              error // of its last request
}

func (g *group) run(ctx context.Context) error {
	if err := g.plan.Validate(); err != nil {
		return err
	}
	if len(g.nodes) == 0 {
		return errors.New("no managers (want one for each node of the plan)")
	}
	if err := g.each(ctx, "ask", func(ctx context.Context, m *member) (err error) {
		m.table, err = m.client.Table(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := g.match(); err != nil {
		return err
	}
	if err := g.each(ctx, "prepare", g.prepare); err != nil {
		g.abort(ctx)
		return err
	}
	if err := g.each(ctx, "commit", g.commit); err != nil {
		return errors.Join(err, g.rollback(ctx), g.apart())
	}
	return nil
}

// each asks all nodes at once, and returns a *GroupError of those that failed.
func (g *group) each(ctx context.Context, act string, f func(context.Context, *member) error) error {
	var all sync.WaitGroup
	for _, m := range g.nodes {
		all.Go(func() { m.err = f(ctx, m) })
	}
	all.Wait()
	failed := &GroupError{Act: act}
	for _, m := range g.nodes {
		if m.err != nil {
			failed.Nodes = append(failed.Nodes, m.err)
		}
	}
	if len(failed.Nodes) > 0 {
		return failed
	}
	return nil
}

// GroupError is of nodes that have kept a plan from being applied. It is what the errors of Nodes are.
type GroupError struct {
	Act   string  // ask, prepare, commit or roll back
	Nodes []error // each names its manager
}

// maxNamed bounds the nodes that an error names.
const maxNamed = 8

func (e *GroupError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d failed", e.Act, len(e.Nodes))
	for i, err := range e.Nodes {
		if i == maxNamed {
			fmt.Fprintf(&s, "; and %d more", len(e.Nodes)-i)
			break
		}
		fmt.Fprintf(&s, "; %v", err)
	}
	return s.String()
}

// Unwrap returns the nodes' errors.
func (e *GroupError) Unwrap() []error { return e.Nodes }

// match makes sure that the managers are those of different nodes of the plan, and that no pair would be changed at one end alone.
func (g *group) match() error {
	managed := make(map[transport.MAC]*member)
	for _, m := range g.nodes {
		if other := managed[m.table.MAC]; other != nil {
			return fmt.Errorf("managers %v and %v: both are of node %v (want one for each node)", other.client.addr, m.client.addr, m.table.MAC)
		}
		managed[m.table.MAC] = m
		if _, listed := g.plan.NodeOf(m.table.MAC); !listed {
			return fmt.Errorf("manager %v: %w: its node, %v, is not in the plan", m.client.addr, plan.ErrUnknownNode, m.table.MAC)
		}
	}
	if g.options.Partial {
		return nil
	}
	var lacking []string
	for _, s := range g.plan.Nodes {
		if managed[s.MAC] == nil && g.changesTo(s.MAC) {
			lacking = append(lacking, strings.TrimSpace(s.Name+" "+s.MAC.String()))
		}
	}
	if len(lacking) > 0 {
		return fmt.Errorf("%w: the plan changes pairs of nodes whose managers are not given: %s (give them all, or --partial if those nodes will be changed otherwise)",
			ErrOneSided, someOf(lacking))
	}
	return nil
}

// changesTo reports whether the plan changes the route of a managed node to dst.
func (g *group) changesTo(dst transport.MAC) bool {
	to, _ := g.plan.NodeOf(dst)
	for _, m := range g.nodes {
		from, _ := g.plan.NodeOf(m.table.MAC)
		if m.vidTo(dst) != g.plan.PairVID(from, to) {
			return true
		}
	}
	return false
}

// vidTo returns the VID that a node sends to dst with, before the change; 0: untagged.
func (m *member) vidTo(dst transport.MAC) (vid transport.VID) {
	for _, r := range m.table.Routes {
		if r.Dst == dst {
			return r.VID
		}
		if r.Dst == transport.Broadcast {
			vid = r.VID
		}
	}
	return vid
}

func (g *group) prepare(ctx context.Context, m *member) error {
	q := &prepareRequest{reason: reason{g.options.Reason}, ID: g.id, LeaseMS: int(g.options.Lease.Milliseconds()), Plan: &Plan{*g.plan}}
	if _, err := m.client.prepare(ctx, q, m.table.Version); err != nil {
		return err
	}
	m.state = NodePrepared
	return nil
}

// abort tells all to forget what they have prepared. Who does not hear it forgets it when the lease is over.
func (g *group) abort(ctx context.Context) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	_ = g.each(ctx, "abort", func(ctx context.Context, m *member) error {
		err := m.client.abort(ctx, g.id)
		if err == nil {
			m.state = NodeUnchanged
		}
		return err
	})
}

// afterwardsTimeout is how long mending may take when the caller does not want to wait any more.
const afterwardsTimeout = 5 * time.Second

// afterwards returns a context for what has to be done though ctx may have ended.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), afterwardsTimeout)
}

// commit tells a node to change. Where the answer is lost it asks again: a commit that was carried out is answered as such.
func (g *group) commit(ctx context.Context, m *member) error {
	m.state = NodeUnknown
	ctx, cancel := context.WithTimeout(ctx, g.options.Lease)
	defer cancel()
	m.earliest = time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		sent := time.Now()
		answer, err := m.client.commit(ctx, g.id)
		m.latest = time.Now()
		if err == nil {
			m.state, m.answer = NodeChanged, answer
			if !answer.Again {
				m.earliest = sent.Add(time.Duration(answer.AfterUS) * time.Microsecond)
				m.latest = m.latest.Add(-time.Duration(answer.BeforeUS) * time.Microsecond)
			}
			return nil
		}
		if !errors.Is(err, ErrUnreachable) {
			return err // it has forgotten the change, or could not write it: see rollback
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// rollback takes the change back where it was made, or may have been.
func (g *group) rollback(ctx context.Context) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return g.each(ctx, "roll back", func(ctx context.Context, m *member) error {
		_, err := m.client.Rollback(ctx, g.id, "another node did not change")
		switch {
		case err == nil:
			m.state = NodeBack
		case errors.Is(err, ErrChanged):
			m.state = NodeUnchanged // it was not made here
			return m.client.abort(ctx, g.id)
		}
		return err
	})
}

// apart returns an error that names the nodes which were lost in the second phase: the others have gone back.
func (g *group) apart() error {
	var lost []string
	for _, m := range g.nodes {
		if m.state == NodeUnknown || m.state == NodeChanged { // that one could not go back
			n := statusOf(m.client.addr, m.table, nil)
			lost = append(lost, n.label())
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%w, or may have: plan %s, which the others have taken back, may be that of %s (when they answer, rawlane route apply again; rawlane route status says who has what)",
		ErrPlansDiffer, PlanID(g.plan), someOf(lost))
}
