package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// ControlOptions of Control. Topology must be given; else the zero value will do.
type ControlOptions struct {
	// Topology is the network; its hosts are the plan's nodes.
	Topology *topology.Topology
	// Config says how eager the control is.
	Config control.ControllerConfig
	// Lease is that of each change: see ApplyOptions.
	Lease time.Duration
	// Logger is told of what goes wrong, and of what is changed and why. Nil: nobody is.
	Logger *slog.Logger
	// OnChange, if not nil, is told of each change that was decided, and what became of it.
	OnChange func(decisions []control.Decision, report *Report, err error)
}

// Control chooses the routes of a running cluster by itself: each period it reads what the nodes have sent, and if the worst link would be
// better off for long enough it applies another plan, as Apply does. The reasons are in the managers' logs. It returns when ctx
// ends, or with an error if it cannot begin: the managers must have one and the same plan. The error is ErrPlansDiffer if they have not.
//
// While it runs, managers may be lost and come back: the pairs of nodes that cannot be read are left alone. Plans that others apply are taken
// over; while nodes have different ones nothing is changed, and the logger told which. What programs and operators set for single pairs stays over the plan, and is taken as it is.
//
// Source: VFREC §3.2, the autonomous control that the paper leaves open.
func Control(ctx context.Context, managers []*Client, o ControlOptions) error {
	if o.Topology == nil {
		return errors.New("control: no topology (want the network that the managers' nodes are in)")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &controlLoop{options: o}
	for _, m := range managers {
		c.nodes = append(c.nodes, &watched{client: m})
	}
	if err := c.begin(ctx); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	o.Logger.Info("watching", "nodes", len(c.nodes), "plan", PlanID(c.plan))
	for c.sleep(ctx) {
		c.period(ctx)
	}
	return ctx.Err()
}

// control is one Control.
type controlLoop struct {
	options  ControlOptions
	nodes    []*watched
	plan     *plan.Plan // in force on the managers; what is laid over it is not in it
	core     *control.Controller
	troubled bool // the last period's trouble was told
	differed bool // the nodes had different plans in the last period
}

// watched is a node whose counters are read.
type watched struct {
	client   *Client
	table    *Table
	counters Counters
	err      error
}

// begin finds the plan that all managers have.
func (c *controlLoop) begin(ctx context.Context) error {
	if len(c.nodes) == 0 {
		return errors.New("no managers")
	}
	c.read(ctx)
	for _, n := range c.nodes {
		if n.err != nil {
			return n.err
		}
	}
	plan, err := c.common()
	if err != nil {
		return err
	}
	c.plan = plan
	c.core, err = control.NewController(clock.Now(), c.options.Topology, plan, c.options.Config)
	return err
}

// read asks all nodes at once for table and counters.
func (c *controlLoop) read(ctx context.Context) {
	var all sync.WaitGroup
	for _, n := range c.nodes {
		all.Go(func() {
			if n.table, n.err = n.client.Table(ctx); n.err == nil {
				n.counters, n.err = n.client.Counters(ctx)
			}
		})
	}
	all.Wait()
}

// common returns the plan that all nodes have which could be read.
func (c *controlLoop) common() (*plan.Plan, error) {
	var found []NodeStatus
	var one *Table
	for _, n := range c.nodes {
		if n.err == nil {
			one = n.table
			found = append(found, statusOf(n.client.addr, n.table, nil))
		}
	}
	if one == nil {
		return nil, fmt.Errorf("%w: none of %d answers", ErrUnreachable, len(c.nodes))
	}
	if err := differing(found); err != nil {
		return nil, err
	}
	if one.Plan == nil {
		return nil, fmt.Errorf("%w (give all nodes one: rawlane route apply)", ErrNoPlan)
	}
	return &one.Plan.Plan, nil
}

// sleep returns true when the period ends, and false when ctx does.
func (c *controlLoop) sleep(ctx context.Context) bool {
	at, _ := c.core.Deadline()
	timer := time.NewTimer(at.Sub(clock.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// period reads the counters, decides, and carries the decisions out.
func (c *controlLoop) period(ctx context.Context) {
	c.read(ctx)
	err := c.follow()
	if err == nil {
		err = c.observe()
	}
	c.trouble(err)
	decisions := c.core.Advance(clock.Now(), nil)
	if len(decisions) == 0 {
		return
	}
	var report *Report
	if !errors.Is(err, ErrPlansDiffer) { // else whoever changes plans has not done with it
		report, err = c.carryOut(ctx, decisions)
	}
	if err != nil {
		var changes []plan.Change
		for _, d := range decisions {
			changes = append(changes, d.Change)
		}
		c.core.Refused(clock.Now(), changes, err.Error())
		c.options.Logger.Error("the change was not made", "decisions", len(decisions), "err", err)
	}
	for _, d := range decisions {
		c.options.Logger.Info("decided", "change", d.Change.String(), "why", d.Why, "made", err == nil)
	}
	if c.options.OnChange != nil {
		c.options.OnChange(decisions, report, err)
	}
}

// follow takes a plan over that others have applied.
func (c *controlLoop) follow() error {
	plan, err := c.common()
	if err != nil || same(&Plan{*plan}, &Plan{*c.plan}) {
		return err
	}
	if err := c.core.Replace(plan); err != nil {
		return err
	}
	c.plan = plan
	c.options.Logger.Info("somebody has applied another plan")
	return nil
}

// observe hands the counters to the controller.
func (c *controlLoop) observe() error {
	now := clock.Now()
	var errs []error
	for _, n := range c.nodes {
		if n.err != nil {
			errs = append(errs, n.err)
			continue
		}
		number, _ := c.plan.NodeOf(n.table.MAC)
		sample := control.Sample{Node: number, At: now}
		for _, count := range n.counters.Nodes {
			to, listed := c.plan.NodeOf(*count.Dst)
			if listed && to != number && c.uses(count.VID) {
				sample.Sent = append(sample.Sent, control.SentTo{Node: to, VID: count.VID, Bytes: count.Bytes})
			}
		}
		if err := c.core.Observe(sample); err != nil {
			errs = append(errs, fmt.Errorf("manager %v: %w", n.client.addr, err))
		}
	}
	return errors.Join(errs...)
}

// uses reports whether a VID is one of the plan's: counters remember those of plans before.
func (c *controlLoop) uses(vid transport.VID) bool {
	for _, v := range c.plan.VIDs {
		if v == vid {
			return true
		}
	}
	return false
}

// trouble tells of what keeps nodes from being read, or the plan from being known, once until it is over. Plans that differ in one period alone
// are somebody's who is just changing them.
func (c *controlLoop) trouble(err error) {
	before := c.differed
	c.differed = errors.Is(err, ErrPlansDiffer)
	switch {
	case c.differed && !before:
		return
	case c.differed && !c.troubled:
		c.options.Logger.Error("nothing is changed until all nodes have one plan", "err", err)
	case err != nil && !c.troubled:
		c.options.Logger.Warn("some nodes cannot be read; their pairs are left alone", "err", err)
	case err == nil && c.troubled:
		c.options.Logger.Info("all nodes can be read again, and have one plan")
	}
	c.troubled = err != nil
}

// carryOut applies the plan in force with the decisions' changes.
func (c *controlLoop) carryOut(ctx context.Context, decisions []control.Decision) (*Report, error) {
	changes := make(map[plan.Pair]transport.VID, len(decisions))
	for _, d := range decisions {
		changes[d.Change.Pair] = d.Change.To
	}
	next, err := c.plan.With(changes)
	if err != nil {
		return nil, err
	}
	var clients []*Client
	for _, n := range c.nodes {
		if n.err == nil {
			clients = append(clients, n.client)
		}
	}
	report, err := Apply(ctx, clients, next, ApplyOptions{Reason: explain(decisions), Lease: c.options.Lease})
	if err == nil {
		c.plan = next
	}
	return report, err
}

// explain is what the managers' logs say of decisions: as much as fits.
func explain(decisions []control.Decision) string {
	var s strings.Builder
	for i, d := range decisions {
		text := d.String()
		if s.Len()+len(text)+40 > MaxReason {
			fmt.Fprintf(&s, "; and %d more", len(decisions)-i)
			break
		}
		if i > 0 {
			s.WriteString("; ")
		}
		s.WriteString(text)
	}
	return s.String()
}
