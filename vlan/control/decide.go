package control

import (
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	// controlPerChange is optimize.Options.PerChange: pairs that gain little are left alone.
	controlPerChange = 0.5
	// worse is from which factor on a worst link counts as worse: rates of two periods are never quite the same.
	worse = 1.02
	// faint is the average rate, as part of the sender's cable, below which a flow is forgotten.
	faint = 1e-6
	// foreignPeriods is for how many periods in a row a pair must use another VID than it should for that to be taken as it is.
	foreignPeriods = 2
)

// remember adds what was wanted in a period to the average, and to the latest periods.
func (c *Controller) remember(wanted traffic.Matrix) {
	first := len(c.past) == 0
	if c.past = append(c.past, wanted); len(c.past) > c.cfg.Hysteresis {
		c.past = slices.Delete(c.past, 0, 1)
	}
	for k := range c.mean {
		c.mean[k] *= topology.Rate(1 - c.cfg.Weight)
	}
	for _, f := range wanted {
		if k := (flowKey{f.From, f.To}); first {
			c.mean[k] = f.Rate
		} else {
			c.mean[k] += topology.Rate(c.cfg.Weight) * f.Rate
		}
	}
	for k, rate := range c.mean {
		if rate < faint*c.topology.Hosts[k.from].Rate {
			delete(c.mean, k)
		}
	}
}

// average returns what is wanted on average.
func (c *Controller) average() traffic.Matrix {
	t := make(traffic.Matrix, 0, len(c.mean))
	for k, rate := range c.mean {
		t = append(t, traffic.Flow{From: k.from, To: k.to, Rate: rate})
	}
	slices.SortFunc(t, traffic.Flow.Compare)
	return t
}

// worst returns the worst link of a plan under some traffic, and its utilisation.
func (c *Controller) worst(demand traffic.Matrix, plan *plan.Plan) (worst topology.Hop, utilisation float64) {
	load := make([]topology.Rate, 2*len(c.topology.Links))
	var path []topology.Hop
	for _, f := range demand {
		path, _ = c.paths.Append(path[:0], f.From, f.To, plan.PairVID(f.From, f.To)) // without one, it loads nothing
		for _, h := range path {
			load[h.Index()] += f.Rate
		}
	}
	for i, l := range load {
		if u := float64(l / c.topology.Links[i/2].Rate); u > utilisation {
			worst, utilisation = topology.HopAt(i), u
		}
	}
	return worst, utilisation
}

// propose looks for a better plan, and begins to carry it out if it has been better for long enough.
func (c *Controller) propose(now monotime.Time) []Decision {
	p, err := optimize.NewProblem(c.topology, c.average(), c.plan, optimize.Options{PerChange: controlPerChange, Keep: c.resting(now)})
	if err != nil {
		c.streak = 0 // a pair is cut off: no plan helps
		return nil
	}
	choice, changes := c.gain(p)
	if len(changes) > c.cfg.MaxChanges {
		choice = p.Some(choice, c.cfg.MaxChanges)
		changes = p.Changes(choice)
	}
	if len(changes) == 0 {
		c.streak = 0
		return nil
	}
	next := p.Plan(choice)
	if c.objected(next) {
		c.streak = 0
		return nil
	}
	if c.streak++; c.streak < c.cfg.Hysteresis {
		return nil
	}
	c.before, c.plan = c.plan, next
	c.trial = explain(now, p, choice)
	for _, d := range c.trial {
		c.tire(now, d.Change.Pair)
		c.note(d)
	}
	return c.trial
}

// gain returns the best choices, and what they change: nothing, if that gains too little.
func (c *Controller) gain(p *optimize.Problem) (choice []int32, changes []plan.Change) {
	before, after := p.NewAssignment(), p.NewAssignment()
	before.TakeCurrent()
	was := before.Score().Worst
	if was < c.cfg.MinUtilization || was-p.Bound < was*c.cfg.Gain {
		return nil, nil
	}
	choice = p.Search(p.ControlEffort())
	after.TakeAll(choice)
	changes = p.Changes(choice)
	if was-after.Score().Worst < was*(c.cfg.Gain+c.cfg.Cost*float64(len(changes))) {
		return nil, nil
	}
	return choice, changes
}

// resting returns which pairs are left alone: those that have changed, and those of which a node cannot be reached.
func (c *Controller) resting(now monotime.Time) func(plan.Pair) bool {
	missing := func(node int) bool { return c.meter.nodes[node].silent > 0 || c.meter.nodes[node].last == nil }
	return func(p plan.Pair) bool {
		return missing(p.A) || missing(p.B) || now.Before(c.rest[p].until)
	}
}

// objected reports whether a plan would have been worse than the one in force for one of the latest periods.
func (c *Controller) objected(plan *plan.Plan) bool {
	return slices.ContainsFunc(c.past, func(wanted traffic.Matrix) bool { return c.isWorse(wanted, plan, c.plan) })
}

func (c *Controller) isWorse(wanted traffic.Matrix, plan, than *plan.Plan) bool {
	_, u := c.worst(wanted, plan)
	_, v := c.worst(wanted, than)
	return u > v*worse
}

// judge compares the plan in force with the one before, by what was wanted since, and takes the changes back if they made it
// worse.
func (c *Controller) evaluate(now monotime.Time, wanted traffic.Matrix) []Decision {
	before, trial := c.before, c.trial
	c.before, c.trial = nil, nil
	hop, is := c.worst(wanted, c.plan)
	_, would := c.worst(wanted, before)
	if is > would*worse {
		c.streak = 0
		return c.revert(now, trial, hop, is, would)
	}
	return nil
}

// takeBack undoes the changes of a trial.
func (c *Controller) revert(now monotime.Time, trial []Decision, hop topology.Hop, is, would float64) (back []Decision) {
	for _, d := range trial {
		ch := plan.Change{Pair: d.Change.Pair, From: d.Change.To, To: d.Change.From}
		if c.plan.PairVID(ch.Pair.A, ch.Pair.B) != ch.From {
			continue // somebody else has changed it since
		}
		c.setVID(ch.Pair, ch.To)
		c.tire(now, ch.Pair)
		d = Decision{At: now, Change: ch, Reason: Revert, Why: c.whyBack(hop, is, would)}
		c.note(d)
		back = append(back, d)
	}
	return back
}

// tire lets a pair rest that changes now: for Rest, or for twice as long as the last time if it changes soon after that. So a pair
// changes ever more seldom while its changes do not last.
func (c *Controller) tire(now monotime.Time, p plan.Pair) {
	r, tired := c.rest[p]
	switch {
	case !tired || now.After(r.until.Add(r.length)):
		r.length = c.cfg.FlapDamping
	default:
		r.length = min(2*r.length, maxRests*c.cfg.FlapDamping)
	}
	r.until = now.Add(r.length)
	c.rest[p] = r
}

// setVID notes what a pair uses.
func (c *Controller) setVID(p plan.Pair, vid transport.VID) {
	c.plan = c.plan.Exchange(map[plan.Pair]transport.VID{p: vid})
}

// adopt takes over what somebody else has changed: pairs that keep using another VID than they should. They rest.
func (c *Controller) adopt(now monotime.Time, passed passage) {
	pairs := make([]plan.Pair, 0, len(passed.vid))
	for p := range passed.vid {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, plan.Pair.Compare)
	for _, p := range pairs {
		should, uses := c.plan.PairVID(p.A, p.B), passed.vid[p]
		if should == uses || !slices.ContainsFunc(c.topology.VLANs, func(v topology.VLAN) bool { return v.VID == uses }) {
			delete(c.external, p)
			continue
		}
		if c.external[p]++; c.external[p] < foreignPeriods {
			continue
		}
		delete(c.external, p)
		c.setVID(p, uses)
		if c.before != nil {
			c.before = c.before.Exchange(map[plan.Pair]transport.VID{p: uses})
		}
		c.tire(now, p)
		c.note(Decision{At: now, Change: plan.Change{Pair: p, From: should, To: uses}, Reason: External, Why: "its frames have that VID: somebody else has changed it"})
	}
}
