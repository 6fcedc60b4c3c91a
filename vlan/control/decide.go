package control

import (
	"maps"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	// triesPerPath is the effort of a period's search per VID of each flow, and maxEffort the most
	// of all: some tens of milliseconds.
	triesPerPath, maxEffort = 50, 1 << 20
	// perChange is optimize.Options.PerChange: pairs that gain little are left alone.
	perChange = 0.5
	// worse is the factor from which on a worst link counts as worse: rates of two periods always
	// differ.
	worse = 1.02
	// faint is the average rate, as part of the sender's cable, below which a flow is forgotten.
	faint = 1e-6
	// externalPeriods is the number of periods in a row in which a pair must use another VID than
	// planned before that counts as an external change.
	externalPeriods = 2
	// maxDamping bounds how long pairs rest whose changes do not last, in times of FlapDamping.
	maxDamping = 64
)

// rest is the time for which a pair is left alone.
type rest struct {
	until  monotime.Time
	length time.Duration
}

// remember adds the demand of a period to the average, and to the latest periods. The average has
// no pair that a plan from outside has left without a VID.
func (c *Controller) remember(demand traffic.Matrix) {
	first := len(c.past) == 0
	if c.past = append(c.past, demand); len(c.past) > c.cfg.Hysteresis {
		c.past = slices.Delete(c.past, 0, 1)
	}
	if first {
		c.mean = demand // which averages with itself
	}
	weight := topology.Rate(c.cfg.Weight)
	sum := make(traffic.Matrix, 0, len(c.mean)+len(demand))
	for _, f := range c.mean {
		f.Rate *= 1 - weight
		sum = append(sum, f)
	}
	for _, f := range demand {
		f.Rate *= weight
		sum = append(sum, f)
	}
	c.mean = slices.DeleteFunc(sum.Normalise(), func(f traffic.Flow) bool {
		return f.Rate < faint*c.topology.Hosts[f.From].Rate || !c.isConnected(f.From, f.To)
	})
}

// worst returns the worst link of a plan under a demand, and its utilisation. A flow that the plan
// cuts off loads nothing.
func (c *Controller) worst(demand traffic.Matrix, p *plan.Plan) (worst topology.Hop, utilisation float64) {
	load, _ := demand.LoadOf(c.paths, p.PairVID)
	return load.MaxLink()
}

// cutsOff reports whether a plan leaves a flow without a path.
func (c *Controller) cutsOff(demand traffic.Matrix, p *plan.Plan) bool {
	return slices.ContainsFunc(demand, func(f traffic.Flow) bool {
		vid := p.PairVID(f.From, f.To)
		return !c.paths.Has(vid) || !c.paths.Connects(f.From, f.To, vid)
	})
}

// isWorse reports whether a plan is worse than another one under a demand: it cuts a flow off, and
// the other one does not, or both are alike in that and its worst link is worse.
func (c *Controller) isWorse(demand traffic.Matrix, p, than *plan.Plan) bool {
	if cuts := c.cutsOff(demand, p); cuts != c.cutsOff(demand, than) {
		return cuts
	}
	_, u := c.worst(demand, p)
	_, v := c.worst(demand, than)
	return u > v*worse
}

// propose looks for a better plan, and begins to carry it out if it has been better for long
// enough.
func (c *Controller) propose(now monotime.Time) []Decision {
	next, report, ok := c.better(now)
	if !ok || c.worseInPast(next) {
		c.streak = 0
		return nil
	}
	if c.streak++; c.streak < c.cfg.Hysteresis {
		return nil
	}
	c.before, c.plan = c.plan, next
	c.trial = c.explain(now, &report)
	for _, d := range c.trial {
		c.dampen(now, d.Change.Pair)
		c.note(d)
	}
	return c.trial
}

// better returns a plan with a gain that is worth its changes. ok is false if there is none.
func (c *Controller) better(now monotime.Time) (next *plan.Plan, r optimize.Report, ok bool) {
	if _, u := c.Worst(); u < c.cfg.MinUtilization && !c.cutsOff(c.mean, c.plan) {
		return nil, r, false
	}
	next, r, err := optimize.Plan(c.topology, c.mean, c.plan, optimize.Options{
		PerChange: perChange, Keep: c.keep(now), Avoid: c.avoided.isDown, Batch: c.cfg.MaxChanges,
		MinGain: c.cfg.Gain, GainPerChange: c.cfg.Cost,
		Effort: effort(len(c.mean), len(c.topology.VLANs)),
	})
	return next, r, err == nil && len(r.Changes) > 0
}

// effort is that of a period's search.
func effort(flows, vids int) int { return max(1, min(triesPerPath*flows*vids, maxEffort)) }

// keep returns the test for pairs that are left alone: those that rest, those with a node whose
// counters are missing, and those that a failover has moved.
func (c *Controller) keep(now monotime.Time) func(plan.Pair) bool {
	missing := func(node int) bool { return c.meter.nodes[node].missing || c.meter.nodes[node].last == nil }
	return func(p plan.Pair) bool {
		return missing(p.A) || missing(p.B) || now.Before(c.rests[p].until) || c.avoided.moved[p]
	}
}

// worseInPast reports whether a plan would have been worse than the one in force in one of the
// latest periods.
func (c *Controller) worseInPast(p *plan.Plan) bool {
	return slices.ContainsFunc(c.past, func(demand traffic.Matrix) bool { return c.isWorse(demand, p, c.plan) })
}

// evaluate compares the plan in force with the one before, under the demand since, and reverts the
// changes if they made it worse.
func (c *Controller) evaluate(now monotime.Time, demand traffic.Matrix) (back []Decision) {
	before, trial := c.before, c.trial
	c.before, c.trial = nil, nil
	if !c.isWorse(demand, c.plan, before) {
		return nil
	}
	hop, is := c.worst(demand, c.plan)
	_, would := c.worst(demand, before)
	c.streak = 0
	undo := make(map[plan.Pair]transport.VID)
	for _, d := range trial {
		ch := reverse(d.Change)
		if c.plan.PairVID(ch.Pair.A, ch.Pair.B) != ch.From {
			continue // an external change came since
		}
		if c.avoided.moved[ch.Pair] || c.avoided.isDown(ch.Pair, ch.To) {
			continue // the VID before is worse than any load
		}
		undo[ch.Pair] = ch.To
		c.dampen(now, ch.Pair)
		d = Decision{At: now, Change: ch, Reason: Revert, Why: c.explainRevert(hop, is, would)}
		c.note(d)
		back = append(back, d)
	}
	c.plan = c.plan.Exchange(undo)
	return back
}

// dampen lets a pair rest that changes now: for FlapDamping the first time, and then for twice as
// long as the last time, which is halved first for each rest of that length in which the pair has
// stayed as it was since. So a pair changes ever more seldom while its changes do not last, and one
// quiet rest does not undo all of that. (Route flap damping, RFC 2439 §4.8: penalties decay.)
func (c *Controller) dampen(now monotime.Time, p plan.Pair) {
	r, before := c.rests[p]
	if before {
		halvings := now.Sub(r.until) / r.length
		r.length = min(2*(r.length>>max(0, halvings)), maxDamping*c.cfg.FlapDamping)
	}
	r.length = max(r.length, c.cfg.FlapDamping)
	r.until = now.Add(r.length)
	c.rests[p] = r
}

// explainExternal says who has given a pair the VID that its frames have.
func (c *Controller) explainExternal(p plan.Pair) string {
	switch {
	case c.avoided.moved[p]:
		c.failedOver[p] = true
		return "its frames have that VID: a failover has moved it"
	case c.failedOver[p]:
		delete(c.failedOver, p)
		return "its frames have that VID: a failover has taken it back"
	}
	return "its frames have that VID: somebody else has changed it"
}

// adopt takes over external changes: pairs that keep using another VID of the plan than planned.
// They rest.
func (c *Controller) adopt(now monotime.Time, seen observation) {
	changed := make(map[plan.Pair]transport.VID)
	before := c.external
	c.external = make(map[plan.Pair]int) // pairs that do not, or are silent, begin anew
	for _, p := range slices.SortedFunc(maps.Keys(seen.vids), plan.Pair.Compare) {
		used, should := seen.vids[p], c.plan.PairVID(p.A, p.B)
		if used == several || should == used || !c.paths.Has(used) || !slices.Contains(c.plan.VIDs, used) {
			continue
		}
		if periods := before[p] + 1; periods < externalPeriods {
			c.external[p] = periods
			continue
		}
		changed[p] = used
		c.dampen(now, p)
		c.note(Decision{
			At: now, Change: plan.Change{Pair: p, From: should, To: used}, Reason: External, Why: c.explainExternal(p),
		})
	}
	if len(changed) == 0 {
		return // in most periods: another plan would be one as large as this one
	}
	c.plan = c.plan.Exchange(changed)
	if c.before != nil {
		c.before = c.before.Exchange(changed)
	}
}
