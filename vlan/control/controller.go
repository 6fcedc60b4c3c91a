package control

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// Controller chooses the routes of a running network. It is told what nodes have sent, estimates
// the demand behind it, and decides once in a period which pairs change their VID. It sends
// nothing:
//
//	c, err := control.NewController(now, topology, plan, control.ControllerConfig{})
//	at each c.Deadline():
//	    c.Observe(sample)                  for each node whose counters could be read
//	    decisions = c.Advance(now, nil)
//	    carry them out, all or none;       c.Refused(now, changes, "why") if that failed
//
// # Demand
//
// Counters show what passed. A link that two pairs could each fill shows 1.0 and not 2.0, and still
// 1.0 when one of them has left. So a flow that is among the largest of a full link counts as held
// back. Its demand is taken to be what its host's cable and that of its receiver would give it
// beside their other flows (max-min fair), but no more than it was last seen to send when nothing
// held it back. When the pair has moved, a wrong estimate shows, and is corrected.
//
// # Stability
//
// The traffic is averaged over periods. A plan must be better by Gain, and by more if it changes
// many pairs, for Hysteresis periods in a row, and must not be worse in any single one of them: so
// patterns that alternate do not make the routes alternate. Changes come in small batches that do
// not make the worst link worse on the way. In the period after, the controller compares with the
// plan before: if that is better by now, the changes are reverted. Pairs that have changed rest,
// and rest longer each time that they change again soon, even if the traffic depends on the routes.
//
// A plan that leaves a pair that talks without a path, as its VLAN has lost a cable, is worse than
// each one that does not, whatever their links carry.
//
// Pairs that no VID of the plan connects are left out: see Notices.
//
// Where nodes have a Failover, it knows more: a pair that it has put on another VID is left alone
// until it takes that back, and no pair is put on a VID that carries nothing between its nodes.
//
// Counters of nodes may be missing, for a while or always. The pairs of these nodes do not change,
// and their last rates go on to count, but for those to nodes that send them nothing any more.
//
// Source: the autonomous control of VFREC §3.2, which the paper leaves open. Demand estimation:
// Hedera, Al-Fares et al., NSDI 2010, §4.
type Controller struct {
	cfg      ControllerConfig
	topology *topology.Topology
	paths    *topology.Paths
	plan     *plan.Plan      // in force, as far as is known
	vids     []transport.VID // that pairs may get
	deadline monotime.Time

	meter     meter
	estimator demandEstimator
	past      []traffic.Matrix // demand of the latest periods, the newest last
	mean      traffic.Matrix   // demand on average
	streak    int              // periods in a row with a gain

	before *plan.Plan // in force before the changes under evaluation, or nil
	trial  []Decision // the changes under evaluation
	rests  map[plan.Pair]rest
	log    []Decision

	notices []string           // of the latest Advance
	cutOff  map[plan.Pair]bool // pairs that were told of: no VID connects them
	fast    map[int]bool       // nodes that were told of: they send more than their cables carry

	external map[plan.Pair]int // periods in a row in which a pair used another VID than plan says

	samples    map[int]Sample     // of this period, by node: what failovers tell
	avoided    avoided            // in the period that has ended
	failedOver map[plan.Pair]bool // pairs whose VID in plan is a failover's
}

// NewController returns a controller for a network in which the plan is in force at now. Errors:
// topology.ErrInvalid, plan.ErrInvalid; a field of cfg that is out of range.
func NewController(
	now monotime.Time, t *topology.Topology, inForce *plan.Plan, cfg ControllerConfig,
) (*Controller, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := controllable(t, inForce); err != nil {
		return nil, err
	}
	paths, err := topology.NewPaths(t)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	c := &Controller{
		cfg: cfg, topology: t, paths: paths, plan: inForce, deadline: now.Add(cfg.Period),
		meter: newMeter(t), estimator: newDemandEstimator(t),
		rests: make(map[plan.Pair]rest), external: make(map[plan.Pair]int),
		cutOff: make(map[plan.Pair]bool), fast: make(map[int]bool),
		samples: make(map[int]Sample), failedOver: make(map[plan.Pair]bool),
	}
	c.vids = c.plan.Usable(c.topology).VIDs()
	return c, nil
}

// controllable reports whether a controller can begin with a plan.
func controllable(t *topology.Topology, p *plan.Plan) error {
	if p == nil {
		return fmt.Errorf("control: %w: there is none", plan.ErrInvalid)
	}
	if _, _, err := optimize.Plan(t, nil, p, optimize.Options{}); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// Replace reports that another plan has come into force from outside. What is known of the traffic
// stays. The error is plan.ErrInvalid for a plan of other nodes, or of VIDs that the network does
// not have; then nothing changes.
func (c *Controller) Replace(p *plan.Plan) error {
	if err := controllable(c.topology, p); err != nil {
		return err
	}
	c.plan, c.before, c.trial, c.streak = p, nil, nil, 0
	c.vids = c.plan.Usable(c.topology).VIDs()
	clear(c.external)
	clear(c.cutOff)
	clear(c.failedOver)
	return nil
}

// Deadline returns the end of the period: the time to read the counters and call Advance. ok is
// true.
func (c *Controller) Deadline() (at monotime.Time, ok bool) { return c.deadline, true }

// Observe takes a sample. Of several from one node in a period the last one counts. A sample must
// leave out destinations that are not nodes of the plan, such as groups. The error, ErrBadSample,
// names the fault of a sample, which is ignored then.
func (c *Controller) Observe(s Sample) error {
	err := c.meter.observe(s)
	if err == nil {
		c.samples[s.Node] = s
	}
	return err
}

// Plan returns the plan in force, as far as the controller knows. The caller must not change it.
func (c *Controller) Plan() *plan.Plan { return c.plan }

// Traffic returns the demand on average, as far as the controller knows.
func (c *Controller) Traffic() traffic.Matrix { return slices.Clone(c.mean) }

// State returns what the controller is doing.
func (c *Controller) State() State {
	switch {
	case c.before != nil:
		return Evaluating
	case c.streak > 0:
		return Waiting
	}
	return Watching
}

// Worst returns the worst link under the average demand, and its utilisation.
func (c *Controller) Worst() (topology.Hop, float64) { return c.worst(c.mean, c.plan) }

// Log appends the latest 1,000 decisions and external changes to dst, the oldest first.
func (c *Controller) Log(dst []Decision) []Decision { return append(dst, c.log...) }

// Refused reports that changes of the latest decisions were not carried out, and why: the pairs
// have the VIDs that they had.
func (c *Controller) Refused(now monotime.Time, changes []plan.Change, why string) {
	undo := make(map[plan.Pair]transport.VID)
	for _, ch := range changes {
		undo[ch.Pair] = ch.From
		c.dampen(now, ch.Pair)
		c.note(Decision{At: now, Change: reverse(ch), Reason: Refused, Why: "not carried out: " + why})
	}
	c.plan = c.plan.Exchange(undo)
	c.before, c.trial, c.streak = nil, nil, 0
}

// Advance ends the period, and appends the changes to carry out to out. It does nothing before the
// deadline.
func (c *Controller) Advance(now monotime.Time, out []Decision) []Decision {
	if now.Before(c.deadline) {
		return out
	}
	c.deadline = now.Add(c.cfg.Period)
	c.notices = nil
	c.avoided = avoidedBy(c.samples)
	clear(c.samples)
	seen, ok := c.meter.endPeriod()
	if !ok {
		return out // the first samples: there is nothing to compare them with
	}
	c.adopt(now, seen)
	seen.flows = c.leaveOut(seen.flows)
	c.doubtRates(seen.tooFast)
	demand := c.estimator.estimate(seen, c.paths, c.plan)
	c.remember(demand)
	if c.before != nil {
		if back := c.evaluate(now, demand); len(back) > 0 {
			return append(out, back...)
		}
	}
	return append(out, c.propose(now)...)
}
