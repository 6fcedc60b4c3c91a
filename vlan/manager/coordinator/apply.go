package coordinator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
)

// ApplyOptions of Apply. The zero value works.
type ApplyOptions struct {
	// Reason is kept in the managers' logs.
	Reason string
	// Lease bounds the time for which a manager that has agreed waits for the others, 1 ms to
	// MaxLease. 0: DefaultLease.
	Lease time.Duration
	// Partial allows a plan that changes the routes to nodes whose managers are not given. These
	// nodes keep their VIDs, and switches flood what is sent to them, until they are changed, too.
	Partial bool
	// DryRun changes nothing: the report says what each node would change, if all is as it is now.
	DryRun bool
	// Rollback undoes the latest plan: the plan to apply is that of Previous, and the managers take
	// the present one out of their history.
	Rollback bool
}

// Leases of Apply.
const (
	// DefaultLease is far longer than the nodes of a cluster take to agree, and short enough to
	// wait for after a coordinator's death.
	DefaultLease = 10 * time.Second
	// MaxLease is the longest lease that managers grant.
	MaxLease = time.Minute
)

// Apply makes p the plan of all nodes, in two phases, so that both ends of each pair change at
// nearly the same time: all managers validate the plan and write it to their disks; when all have,
// all are told at once to put it into force.
//
// If a manager refuses or cannot be asked, nothing changes anywhere. If one is lost in the second
// phase, the others go back to what they had; the lost one comes back with its old plan or with the
// new one, and calling Apply again mends it. The error names it, and Survey tells which plan it
// has. The report lists the outcome of each node in any case.
//
// Errors: ErrPlansDiffer if nodes may be left with different plans; a *GroupError of the nodes that
// refused, which matches their errors; api.ErrOneSided if a pair's other end is not among the
// managers; plan.ErrInvalid.
//
// Source: VFREC §4.3: while the ends disagree, frames flood.
func Apply(ctx context.Context, managers []*manager.Client, p *plan.Plan, o ApplyOptions) (*Report, error) {
	return newGroup(managers, p, o).apply(ctx)
}

// group is the nodes of one Apply.
type group struct {
	id      string
	plan    *plan.Plan
	options ApplyOptions
	nodes   []*member
	// amend, if not nil, makes the plan of the tables that the nodes have by now, for a control.
	amend func() (*plan.Plan, error)
}

func newGroup(managers []*manager.Client, p *plan.Plan, o ApplyOptions) *group {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	return &group{id: rand.Text(), plan: p, options: o, nodes: membersOf(managers)}
}

// apply is Apply.
func (g *group) apply(ctx context.Context) (*Report, error) {
	if err := g.run(ctx); err != nil {
		return g.report(), fmt.Errorf("apply: %w", err)
	}
	return g.report(), nil
}

func (g *group) run(ctx context.Context) error {
	if err := g.plan.Validate(); err != nil {
		return err
	}
	if len(g.nodes) == 0 {
		return errors.New("no managers (want one for each node of the plan)")
	}
	if lease := g.options.Lease; lease < time.Millisecond || lease > MaxLease {
		return fmt.Errorf("lease %v: want 1ms to %v, or 0 for %v", lease, MaxLease, DefaultLease)
	}
	if err := g.ask(ctx); err != nil {
		return err
	}
	if g.amend != nil {
		p, err := g.amend()
		if err != nil {
			return err
		}
		g.plan = p
	}
	if err := g.match(); err != nil {
		return err
	}
	if g.options.DryRun {
		return nil
	}
	if err := g.each(ctx, "prepare", g.prepare); err != nil {
		return errors.Join(err, g.abort(ctx))
	}
	if err := g.each(ctx, actCommit, g.commit); err != nil {
		return errors.Join(err, g.abort(ctx), g.apart())
	}
	return nil
}

const actCommit = "commit"

// leastCommitWait is how long the answers to commits are waited for at least, whatever the lease: a
// manager commits at once, or refuses as its lease is over, and then waits for its programs.
const leastCommitWait = api.ConfirmWait + time.Second

// each asks all nodes at once, and returns a *GroupError of those that failed. A manager that has
// stopped and does not answer fails after the wait: when the lease of the others' is over.
func (g *group) each(ctx context.Context, act string, f func(context.Context, *member) error) error {
	wait := g.options.Lease
	if act == actCommit {
		wait = max(wait, leastCommitWait)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return askAll(g.nodes, act, func(m *member) error {
		m.err = f(limited, m)
		if ctx.Err() == nil && errors.Is(m.err, context.DeadlineExceeded) {
			m.err = &lateError{m.client.Addr(), wait, g.options.Lease, m.err}
		}
		return m.err
	})
}

// ask reads the nodes' tables and, for a rollback, what they had before.
func (g *group) ask(ctx context.Context) error {
	err := g.each(ctx, "ask", func(ctx context.Context, m *member) error {
		if err := m.readTable(ctx); err != nil || !g.options.Rollback {
			return err
		}
		return m.readPast(ctx)
	})
	if errors.Is(err, api.ErrUnreachable) {
		return fmt.Errorf("%w (nothing has changed; while nodes are down, leave their managers out and give "+
			"--partial, and apply it to all when they are back)", err)
	}
	return err
}

// wouldJoin reports whether a dry run has found what a node would change: it has answered, and its
// node is in the plan.
func (g *group) wouldJoin(m *member) bool {
	if !g.options.DryRun || m.table == nil {
		return false
	}
	_, listed := g.plan.NodeOf(m.table.MAC)
	return listed
}

// wouldChange counts the routes of a node that the plan changes.
func (g *group) wouldChange(m *member) (routes int) {
	from, _ := g.plan.NodeOf(m.table.MAC)
	for to, s := range g.plan.Nodes {
		if to != from && g.changesRoute(m, s.MAC, g.plan.PairVID(from, to)) {
			routes++
		}
	}
	return routes
}

// match makes sure that the managers are those of different nodes of the plan, and that no pair
// would change at one end alone.
func (g *group) match() error {
	managed := make(map[transport.MAC]*member)
	for _, m := range g.nodes {
		addr, mac := m.client.Addr(), m.table.MAC
		if other := managed[mac]; other != nil {
			return fmt.Errorf("managers %v and %v: both are of node %v (want one for each node)",
				other.client.Addr(), addr, mac)
		}
		managed[mac] = m
		if _, listed := g.plan.NodeOf(mac); !listed {
			return fmt.Errorf("manager %v: %w: its node, %v, is not in the plan", addr, plan.ErrUnknownNode, mac)
		}
		if g.options.Rollback && !m.past.Plan.Equal(&api.Plan{Plan: *g.plan}) {
			return fmt.Errorf("manager %v: %w: it had another plan before", addr, api.ErrChanged)
		}
	}
	if g.options.Partial {
		return nil
	}
	var lacking []string
	number := numbersOf(g.plan)
	for to, s := range g.plan.Nodes {
		if managed[s.MAC] == nil && g.changesTo(to, number) {
			lacking = append(lacking, strings.TrimSpace(s.Name+" "+s.MAC.String()))
		}
	}
	if len(lacking) > 0 {
		return fmt.Errorf("%w: the plan changes pairs of nodes whose managers are not given: %s "+
			"(give them all, or --partial if those nodes will be changed otherwise)",
			api.ErrOneSided, listSome(lacking, ", "))
	}
	return nil
}

// changesTo reports whether the plan, whose nodes have these numbers, changes the route of a
// managed node to another one.
func (g *group) changesTo(to int, number map[transport.MAC]int) bool {
	return slices.ContainsFunc(g.nodes, func(m *member) bool {
		return g.changesRoute(m, g.plan.Nodes[to].MAC, g.plan.PairVID(number[m.table.MAC], to))
	})
}

// changesRoute reports whether a node's route to dst changes with the plan, by which its VID is
// planned. What programs and failovers have laid over the plan stays, if the plan has its VID.
func (g *group) changesRoute(m *member, dst transport.MAC, planned transport.VID) bool {
	present := m.vidTo(dst)
	return present != planned && !(m.laidOver[dst] && slices.Contains(g.plan.VIDs, present))
}

// vidTo returns the VID with which a node sends to dst before the change; 0: untagged. It is asked
// for each pair, of millions in a large cluster.
func (m *member) vidTo(dst transport.MAC) transport.VID {
	for _, to := range []transport.MAC{dst, transport.Broadcast} {
		if i, ok := slices.BinarySearchFunc(m.table.Routes, to, compareDst); ok {
			return m.table.Routes[i].VID
		}
	}
	return 0
}

func compareDst(r api.Route, dst transport.MAC) int { return r.Dst.Compare(dst) }

func (g *group) prepare(ctx context.Context, m *member) error {
	o := &g.options
	q := &api.PrepareRequest{ID: g.id, LeaseMS: int(o.Lease.Milliseconds()), Rollback: o.Rollback, Reason: o.Reason}
	if !q.Rollback {
		q.Plan = &api.Plan{Plan: *g.plan}
	}
	if _, err := m.client.Prepare(ctx, q, m.table.Version); err != nil {
		return err
	}
	m.state = NodePrepared
	return nil
}

// commit tells a node to change. If the answer is lost it asks again: one that was carried out is
// answered as such, and once the lease is over a manager refuses any other.
func (g *group) commit(ctx context.Context, m *member) error {
	m.state = NodeUnknown
	return untilAnswered(ctx, isUnreachable, func() (err error) {
		if m.answer, err = m.client.Commit(ctx, g.id); err == nil {
			m.state = NodeChanged
		}
		return err
	})
}

func isUnreachable(err error) bool { return errors.Is(err, api.ErrUnreachable) }

// untilAnswered repeats a request until its error is not one to try again after, or ctx ends.
func untilAnswered(ctx context.Context, again func(error) bool, request func() error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := request()
		if !again(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// abortTimeout bounds the time for undoing a change, though the caller's context may have ended: a
// manager with a slow disk answers within it.
const abortTimeout = 5 * time.Second

// abort has all nodes forget what they have prepared, and undo what they have committed. A manager
// refuses a commit that comes after its abort. Where a node has prepared and does not hear of the
// abort, the end of its lease does the same.
func (g *group) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	return askAll(g.nodes, "roll back", func(m *member) error { return g.abortOne(ctx, m) })
}

func (g *group) abortOne(ctx context.Context, m *member) error {
	abort := func() error {
		answer, err := m.client.Abort(ctx, g.id, "another node did not change")
		switch {
		case err != nil:
		case answer.Routes > 0:
			m.state = NodeBack
		default:
			err = g.whatItHas(ctx, m)
		}
		return err
	}
	if m.state == NodePrepared || m.state == NodeUnchanged {
		_ = abort() // once: its lease ends by itself
		return nil
	}
	isForNow := func(err error) bool { // another coordinator may have prepared a change just then
		return isUnreachable(err) || errors.Is(err, api.ErrBusy)
	}
	return untilAnswered(ctx, isForNow, abort)
}

// whatItHas finds out what a node has whose abort has changed nothing: its old plan, or one that
// was set over the change, which the abort has left alone.
func (g *group) whatItHas(ctx context.Context, m *member) error {
	if m.state != NodeChanged && m.state != NodeUnknown {
		m.state = NodeUnchanged
		return nil
	}
	now, err := m.client.Table(ctx)
	switch {
	case err != nil:
		m.state = NodeUnknown
		return err
	case now.PlanID != m.table.PlanID:
		m.state, m.replaced = NodeUnknown, true
		m.err = fmt.Errorf("manager %v: %w: it has another plan since, %s (rawlane route apply)",
			m.client.Addr(), ErrPlansDiffer, cmp.Or(now.PlanID, "none"))
		return m.err
	case m.state == NodeChanged:
		m.state = NodeBack
	default:
		m.state = NodeUnchanged
	}
	return nil
}

// apart returns an error that names the nodes which may have kept the plan: the others have gone
// back.
func (g *group) apart() error {
	var lost []string
	for _, m := range g.nodes {
		if (m.state == NodeUnknown || m.state == NodeChanged) && !m.replaced {
			lost = append(lost, m.label())
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%w, or may have: plan %s, which the others have taken back, may be that of %s "+
		"(when they answer, rawlane route apply again; rawlane route status says who has what)",
		ErrPlansDiffer, api.PlanID(g.plan), listSome(lost, ", "))
}
