package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// ControlOptions of Control. Topology must be given; the other fields work with their zero values.
type ControlOptions struct {
	// Topology is the network; its hosts are the plan's nodes.
	Topology *topology.Topology
	// Config sets the controller's thresholds.
	Config control.ControllerConfig
	// Lease is that of each change: see ApplyOptions.
	Lease time.Duration
	// Logger receives each decision with its reason, changes from outside that are taken over, what
	// the controller notices, and errors. Nil: nothing is logged.
	Logger *slog.Logger
	// OnChange, if not nil, is called with the decisions of a period and the outcome of their
	// change.
	OnChange func(decisions []control.Decision, report *Report, err error)
}

// Control chooses the routes of a running cluster by itself. Each period it reads what the nodes
// have sent; if another plan would relieve the worst link for long enough it applies that plan, as
// Apply does. The reasons are in the managers' logs. It returns when ctx ends, or with an error if
// it cannot begin: the managers must have one and the same plan, or the error is ErrPlansDiffer.
//
// While it runs, managers may be lost and come back: it leaves the pairs of nodes alone that it
// cannot read, or that have another plan since they were away. It takes over plans that others
// apply; while nodes that were there all the time have different plans it changes nothing. The
// logger receives which nodes these are, also for the seconds that a decision under way may last
// behind the end of ctx. What programs set for single pairs stays over the plan, and is taken as it
// is; what operators set becomes part of the next plan. Pairs that a failover has put on another
// VID are left alone, and none is put on a VID that a failover of its nodes keeps it off.
//
// Source: VFREC §3.2, the autonomous control that the paper leaves open.
func Control(ctx context.Context, managers []*manager.Client, o ControlOptions) error {
	if o.Topology == nil {
		return errors.New("control: no topology (want the network that the managers' nodes are in)")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &loop{options: o, nodes: membersOf(managers)}
	if err := c.begin(ctx); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	o.Logger.Info("watching", "nodes", len(c.nodes), "plan", api.PlanID(c.plan))
	for ctx.Err() == nil {
		end, _ := c.core.Deadline()
		select {
		case <-time.After(end.Sub(clock.Now())):
			c.period(ctx)
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// loop is one Control.
type loop struct {
	options  ControlOptions
	nodes    []*member
	plan     *plan.Plan // in force on the managers, without what lies over it
	earlier  []string   // ids of plans that were in force before, the latest last
	core     *control.Controller
	troubled string // what of the latest period's trouble was logged
	differed bool   // the nodes had different plans in the latest period
}

// begin finds the plan that all managers have.
func (c *loop) begin(ctx context.Context) error {
	if len(c.nodes) == 0 {
		return errors.New("no managers")
	}
	if err := c.read(ctx); err != nil {
		return err
	}
	p, err := c.common()
	if err != nil {
		return err
	}
	c.plan = p
	c.noteAway()
	c.core, err = control.NewController(clock.Now(), c.options.Topology, p, c.options.Config)
	return err
}

// readTimeout bounds the reading of a node: a manager that has stopped must not hold up the others'
// control.
const readTimeout = 2 * time.Second

// read asks all nodes at once for the plan's id and the counters, and for the table where the plan
// is another one than before: tables are long, and plans change seldom.
func (c *loop) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return askAll(c.nodes, "ask", func(n *member) error {
		n.health, n.err = n.client.Health(ctx)
		if n.err == nil && (n.table == nil || n.table.PlanID != n.health.PlanID) {
			_ = n.readTable(ctx) // notes its error
		}
		if n.err == nil {
			n.readPaths(ctx)
		}
		if n.err == nil {
			n.readCounters(ctx)
		}
		return n.err
	})
}

// readPaths reads a node's paths, where some may not be used: there are many, and mostly all are
// up.
func (n *member) readPaths(ctx context.Context) {
	n.paths = nil
	if n.health.PathsDown+n.health.PathsRestoring > 0 {
		var f api.Failover
		f, n.err = n.client.Failover(ctx)
		n.paths = f.Paths
	}
}

// readCounters reads a node's counters, and notes when: others may take longer.
func (n *member) readCounters(ctx context.Context) {
	n.counters, n.err = n.client.Counters(ctx)
	n.counted = clock.Now()
}

// common returns the plan of all nodes that could be read and were not away; where all were, that
// of all that could be read.
func (c *loop) common() (*plan.Plan, error) {
	of := slices.DeleteFunc(slices.Clone(c.nodes), func(n *member) bool { return !n.stayed() })
	if len(of) == 0 {
		of = c.nodes
	}
	one := slices.IndexFunc(of, func(n *member) bool { return n.err == nil })
	if one < 0 {
		return nil, fmt.Errorf("%w: none of %d answers", api.ErrUnreachable, len(c.nodes))
	}
	if err := differing(of, (*member).present); err != nil {
		return nil, err
	}
	p := of[one].table.Plan
	if p == nil {
		return nil, fmt.Errorf("%w (give all nodes one: rawlane route apply)", api.ErrNoPlan)
	}
	return &p.Plan, nil
}

// stayed reports whether a node could be read, and was not away.
func (n *member) stayed() bool { return n.err == nil && !n.away }

// period reads the counters, decides, and carries the decisions out. Where ctx ends it may return
// with the decision under way: nothing of the loop is for use then.
func (c *loop) period(ctx context.Context) {
	_ = c.read(ctx) // observe tells which nodes could not be read
	var err error
	var decisions []control.Decision
	if !untilDone(ctx, func() { decisions, err = c.decide() }) || len(decisions) == 0 {
		return
	}
	var report *Report
	if !errors.Is(err, ErrPlansDiffer) { // else another coordinator's change is under way
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

// untilDone reports whether a computation, which knows nothing of contexts, is done before ctx
// ends. One that is not goes on for a while, and what it works on is its own until then.
func untilDone(ctx context.Context, computation func()) bool {
	done := make(chan struct{})
	go func() { // until it is done: seconds, in a network of 1,024 nodes that all send to all
		defer close(done)
		computation()
	}()
	select {
	case <-done:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// decide has the controller take in what was read, and ends its period. An error says why nodes are
// left alone, or the plan is not known.
func (c *loop) decide() ([]control.Decision, error) {
	err := c.follow()
	if err == nil {
		err = c.observe()
	}
	c.trouble(err)
	return c.advance(clock.Now()), err
}

// advance ends the controller's period, and logs what it has noticed and taken over.
func (c *loop) advance(now monotime.Time) []control.Decision {
	decisions := c.core.Advance(now, nil)
	for _, notice := range c.core.Notices() {
		c.options.Logger.Warn("noticed", "what", notice)
	}
	for _, d := range c.core.Log(nil) {
		if d.Reason == control.External && d.At == now {
			c.options.Logger.Info("taken over", "change", d.Change.String(), "why", d.Why)
		}
	}
	return decisions
}

// follow takes over a plan that others have applied, be it to nodes that were away, if enough of
// all nodes have it. Nodes that were away and have another plan count as not read.
func (c *loop) follow() error {
	c.noteAway()
	p, err := c.common()
	if err != nil {
		return err
	}
	id := api.PlanID(p)
	if id != api.PlanID(c.plan) {
		if !slices.ContainsFunc(c.nodes, (*member).stayed) && !c.isApplied(id) {
			return fmt.Errorf("%w: the nodes that can be read were away, and have %s, not %s",
				ErrPlansDiffer, id, api.PlanID(c.plan))
		}
		if err := c.core.Replace(p); err != nil {
			return err
		}
		c.succeed(p)
		c.options.Logger.Info("another plan was applied")
	}
	for _, n := range c.nodes {
		if n.err == nil && n.table.PlanID != id {
			n.err = fmt.Errorf("%s: %w: %s, not %s", n.label(), errAway, cmp.Or(n.table.PlanID, "none"), id)
		}
	}
	return nil
}

// isApplied reports whether a plan that nodes have which were away has been applied, as far as can
// be told: most of all nodes have it, or all where it was in force before, as they come back with
// such a one.
func (c *loop) isApplied(id string) bool {
	have := 0
	for _, n := range c.nodes {
		if n.err == nil && n.table.PlanID == id {
			have++
		}
	}
	if slices.Contains(c.earlier, id) {
		return have == len(c.nodes)
	}
	return 2*have > len(c.nodes)
}

// errAway is the error of a node whose pairs are left alone until it has the others' plan.
var errAway = errors.New("it was away, and has another plan than the others since (rawlane route apply)")

// noteAway notes which nodes could not be read, or were restarted, since they had the plan in
// force.
func (c *loop) noteAway() {
	id := api.PlanID(c.plan)
	for _, n := range c.nodes {
		switch {
		case n.err != nil:
			n.away = true
		case n.table.PlanID == id:
			n.away, n.started = false, n.health.Started
		case !n.health.Started.Equal(n.started):
			n.away = true
		}
	}
}

// maxEarlier bounds the earlier plans that a control knows: nodes are seldom away for so many.
const maxEarlier = 1000

// succeed makes p the plan in force.
func (c *loop) succeed(p *plan.Plan) {
	if len(c.earlier) == maxEarlier {
		c.earlier = slices.Delete(c.earlier, 0, 1)
	}
	c.earlier = append(c.earlier, api.PlanID(c.plan))
	c.plan = p
}

// observe hands the counters to the controller. They include those of other plans' nodes, which it
// skips, and of their VIDs: a counter that were gone with one, or back, would be another one.
func (c *loop) observe() error {
	number := numbersOf(c.plan)
	var errs []error
	for _, n := range c.nodes {
		if n.err != nil {
			errs = append(errs, n.err)
			continue
		}
		if err := c.core.Observe(sampleOf(n, number)); err != nil {
			errs = append(errs, fmt.Errorf("manager %v: %w", n.client.Addr(), err))
		}
	}
	return errors.Join(errs...)
}

// sampleOf makes a sample of a node's counters and paths, less those of other plans' nodes.
func sampleOf(n *member, number map[transport.MAC]int) control.Sample {
	self := number[n.table.MAC]
	sample := control.Sample{Node: self, At: n.counted}
	for _, count := range n.counters.Nodes {
		to, listed := number[count.Dst]
		if listed && to != self {
			sample.Sent = append(sample.Sent, control.SentTo{Node: to, VID: count.VID, Bytes: count.Bytes})
		}
	}
	for _, path := range n.paths {
		to, listed := number[path.Peer]
		if !listed || to == self {
			continue
		}
		if path.State == api.PathDown || path.State == api.PathWaitToRestore {
			sample.Down = append(sample.Down, control.DownPath{Node: to, VID: path.VID})
		}
		if path.Used && !path.Preferred {
			sample.Moved = append(sample.Moved, to)
		}
	}
	return sample
}

// trouble logs why nodes are left alone, or the plan is not known, once until that is over. Plans
// that differ in a single period are those of a change under way.
func (c *loop) trouble(err error) {
	before := c.differed
	c.differed = errors.Is(err, ErrPlansDiffer)
	level, what := slog.LevelWarn, ""
	switch {
	case c.differed && !before:
		return
	case c.differed:
		level, what = slog.LevelError, "nothing is changed until all nodes have one plan"
	case errors.Is(err, errAway):
		what = "some nodes have another plan; their pairs are left alone"
	case err != nil:
		what = "some nodes cannot be read; their pairs are left alone"
	}
	switch {
	case what == c.troubled:
	case what == "":
		c.options.Logger.Info("all nodes can be read again, and have one plan")
	default:
		c.options.Logger.Log(context.Background(), level, what, "err", err)
	}
	c.troubled = what
}

// carryOut applies the plan in force with the decisions' changes, and with the pairs that operators
// have set over it: a plan takes their place.
func (c *loop) carryOut(ctx context.Context, decisions []control.Decision) (*Report, error) {
	var clients []*manager.Client
	for _, n := range c.nodes {
		if n.err == nil {
			clients = append(clients, n.client)
		}
	}
	g := newGroup(clients, c.plan, ApplyOptions{Reason: explain(decisions), Lease: c.options.Lease})
	g.amend = func() (*plan.Plan, error) { return c.amended(g.nodes, decisions) }
	report, err := g.apply(ctx)
	if err == nil {
		c.succeed(g.plan)
	}
	return report, err
}

// amended returns the plan in force with the operators' pairs that nodes have over it, and with the
// decisions' changes. The error is api.ErrChanged if a node has another plan by now.
func (c *loop) amended(nodes []*member, decisions []control.Decision) (*plan.Plan, error) {
	number, id := numbersOf(c.plan), api.PlanID(c.plan)
	changes := make(map[plan.Pair]transport.VID, len(decisions))
	for _, m := range nodes {
		if m.table.PlanID != id {
			return nil, fmt.Errorf("manager %v: %w: another plan was applied since", m.client.Addr(), api.ErrChanged)
		}
		for _, p := range m.table.Pairs {
			a, okA := number[p.A]
			b, okB := number[p.B]
			if p.By == byOperator && okA && okB {
				changes[plan.PairOf(a, b)] = p.VID
			}
		}
	}
	for _, d := range decisions {
		changes[d.Change.Pair] = d.Change.To
	}
	return c.plan.With(changes)
}

// byOperator is api.Pair.By of an operator's pairs.
const byOperator = "operator"

// numbersOf returns the numbers of a plan's nodes, by their addresses.
func numbersOf(p *plan.Plan) map[transport.MAC]int {
	number := make(map[transport.MAC]int, len(p.Nodes))
	for k, s := range p.Nodes {
		number[s.MAC] = k
	}
	return number
}

// explain is the decisions' entry in the managers' logs, as far as it fits.
func explain(decisions []control.Decision) string {
	var s strings.Builder
	for i, d := range decisions {
		text := d.String()
		if s.Len()+len(text)+40 > api.MaxReason {
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
