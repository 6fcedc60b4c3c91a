package control

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	// maxPatience bounds how many periods a Controller remembers, maxLog its decisions, and maxNamed the pairs that an explanation names.
	maxPatience, maxLog, maxNamed = 60, 1000, 6

	// maxRests bounds how long pairs rest whose changes do not last, in times of Rest.
	maxRests = 64
)

// ControllerConfig says how eager a Controller is. The zero value of a field stands for its default.
type ControllerConfig struct {
	// Period is how often counters are read and decisions made: 1 s.
	Period time.Duration
	// Weight is that of the latest period in the average traffic; those before have what is left: 0.5.
	Weight float64
	// Gain is by what part the worst link must become lower: 0.1.
	Gain float64
	// Cost is added to Gain for each pair that has to change: until switches have learned a pair's new path, its frames
	// go everywhere (VFREC §5.2). 0.002.
	Cost float64
	// Patience is for how many periods in a row there must be such a gain before anything changes: 3.
	Hysteresis int
	// MaxChanges is how many pairs may change in one period: 8.
	MaxChanges int
	// Rest is how long a pair that has changed is left alone: 10 periods. If it changes again soon after, that doubles.
	FlapDamping time.Duration
	// Quiet is the utilisation of the worst link below which nothing changes: 0.1. (Programs that compute and exchange in
	// turn collide although their links are idle most of the time.)
	MinUtilization float64
}

// withDefaults returns c with its defaults filled in, or an error that names the field that is out of range.
func (c ControllerConfig) withDefaults() (ControllerConfig, error) {
	orDefault(&c.Period, time.Second)
	orDefault(&c.Weight, 0.5)
	orDefault(&c.Gain, 0.1)
	orDefault(&c.Cost, 0.002)
	orDefault(&c.Hysteresis, 3)
	orDefault(&c.MaxChanges, 8)
	orDefault(&c.FlapDamping, 10*c.Period)
	orDefault(&c.MinUtilization, 0.1)
	switch {
	case c.Period < 0:
		return c, fmt.Errorf("control: period %v (want more than 0)", c.Period)
	case !(c.Weight > 0 && c.Weight <= 1):
		return c, fmt.Errorf("control: weight %v (want more than 0, to 1)", c.Weight)
	case !(c.Gain > 0 && c.Gain < 1):
		return c, fmt.Errorf("control: gain %v (want between 0 and 1)", c.Gain)
	case !(c.Cost >= 0 && c.Cost < 1):
		return c, fmt.Errorf("control: cost %v (want 0 or more, below 1)", c.Cost)
	case c.Hysteresis < 1 || c.Hysteresis > maxPatience:
		return c, fmt.Errorf("control: patience %d (want 1 to %d periods)", c.Hysteresis, maxPatience)
	case c.MaxChanges < 1:
		return c, fmt.Errorf("control: max changes %d (want 1 at least)", c.MaxChanges)
	case c.FlapDamping < 0:
		return c, fmt.Errorf("control: rest %v (want 0 or more)", c.FlapDamping)
	case !(c.MinUtilization >= 0):
		return c, fmt.Errorf("control: quiet %v (want 0 or more)", c.MinUtilization)
	}
	return c, nil
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Sample is what a node's counters showed at an instant.
type Sample struct {
	Node int
	At   monotime.Time // on the reader's clock
	Sent []SentTo
}

// SentTo is how much a node has sent to another with one VID, since some instant that stays the same: as Sent, but by node. A counter that
// goes back has begun anew from 0.
type SentTo struct {
	Node  int
	VID   transport.VID
	Bytes uint64
}

// Reason is why a decision was made.
type Reason int

const (
	// Relieve lowers the worst link.
	Relieve Reason = iota
	// Revert undoes a change that made the worst link worse, or would now.
	Revert
	// Refused is a change that was not carried out. It is in the log alone.
	Refused
	// Foreign is a change that somebody else has made. It is in the log alone.
	External
)

// String gives the reason in a word or two.
func (r Reason) String() string {
	switch r {
	case Relieve:
		return "relieve"
	case Revert:
		return "take back"
	case Refused:
		return "refused"
	case External:
		return "foreign"
	}
	return "unknown"
}

// Decision is a change of a pair's VID, and why. All decisions of one Advance belong together.
type Decision struct {
	At     monotime.Time
	Change plan.Change
	Reason Reason
	Why    string // one line, with the numbers
}

// String formats d as "pair 2-8: VID 3 -> 1: ..." and why.
func (d Decision) String() string { return fmt.Sprintf("pair %v: %s", d.Change, d.Why) }

// State is what a Controller is doing.
//
//	state      at the end of a period                        next       decides
//	Watching   another plan is better by Gain                Waiting    -
//	Waiting    it still is, less than Patience periods       Waiting    -
//	Waiting    it is not, or one of these periods objects    Watching   -
//	Waiting    it still is, for Patience periods             Evaluating    up to MaxChanges pairs
//	Evaluating    the plan before were better, now              Watching   the changes back
//	Evaluating    it were not, and there is more to gain        Evaluating    the next pairs
//	Evaluating    it were not                                   Watching   -
type State int

// What a Controller may be doing.
const (
	Watching State = iota
	Waiting
	Evaluating
)

// String names the state.
func (s State) String() string {
	switch s {
	case Watching:
		return "watching"
	case Waiting:
		return "waiting"
	case Evaluating:
		return "judging"
	}
	return "unknown"
}

// Controller chooses the routes of a running network by itself. It is given what nodes have sent, finds out who wants to send
// how much, and decides, once in a period, which pairs should use another VID. It does nothing by itself:
//
//	c, err := vlan.NewController(now, topology, plan, ControllerConfig{})
//	at each c.Deadline():
//	    c.Observe(sample)                  for each node whose counters could be read
//	    decisions = c.Advance(now, nil)
//	    carry them out, all or none;       c.Refused(now, changes, "why") if that failed
//
// # What is wanted, and what is seen
//
// Counters show what passed. A link that is wanted by two who could each fill it shows 1.0 and not 2.0, and so it does when one of them
// has gone elsewhere. So a flow that is among the largest of a link that is full counts as held back: it is taken to want
// what its host's cable and that of its receiver would let it have beside their other flows (max-min fair), but no more than it was
// last seen to send when nothing held it back. A wrong guess is found out when the pair has moved, and then it is known.
//
// # Steadiness
//
// The traffic is averaged over periods. A plan must be better by Gain, more if it changes many pairs, for Patience periods in a row, and
// must not be worse for any of these periods by itself: so patterns that alternate do not make it alternate. Changes come in small numbers, such that the
// worst link does not become worse on the way. In the period after, traffic may have changed: if by what is seen then the plan before
// were better, it is taken back, after one period. Pairs that have changed rest, and those that change again and again ever longer, even if
// what is seen depends on the routes themselves.
//
// Nodes may be missing, for a while or always. Their pairs are not changed.
//
// Source: the autonomous control of VFREC §3.2, which the paper leaves open. What flows want: Hedera, Al-Fares et al., NSDI 2010, §4.
type Controller struct {
	cfg      ControllerConfig
	topology *topology.Topology
	paths    *topology.Paths
	plan     *plan.Plan // in force, as far as is known
	deadline monotime.Time

	meter     meter
	estimator demandEstimator
	past      []traffic.Matrix // what was wanted in the latest periods, the last one last
	mean      map[flowKey]topology.Rate
	streak    int // periods in a row with a gain

	before *plan.Plan // that was in force before the changes that are judged, or nil
	trial  []Decision
	rest   map[plan.Pair]rest
	log    []Decision

	external map[plan.Pair]int // periods in a row in which a pair used another VID than plan says
}

// rest is how long a pair is left alone.
type rest struct {
	until  monotime.Time
	length time.Duration
}

// NewController returns a controller for a network in which plan is in force at now. Errors: topology.ErrInvalid, plan.ErrInvalid; a field of cfg
// that is out of range.
func NewController(now monotime.Time, t *topology.Topology, pl *plan.Plan, cfg ControllerConfig) (*Controller, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := controllable(t, pl); err != nil {
		return nil, err
	}
	paths, err := topology.NewPaths(t)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	c := &Controller{
		cfg: cfg, topology: t, paths: paths, plan: pl, deadline: now.Add(cfg.Period),
		mean: make(map[flowKey]topology.Rate), rest: make(map[plan.Pair]rest), external: make(map[plan.Pair]int),
	}
	c.meter = newMeter(t)
	c.estimator = newDemandEstimator(t)
	return c, nil
}

// controllable reports whether a controller can begin with a plan.
func controllable(t *topology.Topology, pl *plan.Plan) error {
	if pl == nil {
		return fmt.Errorf("control: %w: there is none", plan.ErrInvalid)
	}
	if _, err := optimize.NewProblem(t, nil, pl, optimize.Options{}); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// Replace tells that somebody has put another plan in force. What is known of the traffic stays. The error is an plan.ErrInvalid for a plan of other
// nodes, or of other VIDs than the network's; then it is as if it had not come.
func (c *Controller) Replace(plan *plan.Plan) error {
	if err := controllable(c.topology, plan); err != nil {
		return err
	}
	c.plan, c.before, c.trial, c.streak = plan, nil, nil, 0
	clear(c.external)
	return nil
}

// Deadline returns when the period ends: then read the counters and call Advance. There always is one.
func (c *Controller) Deadline() (at monotime.Time, ok bool) { return c.deadline, true }

// Observe takes a sample. Of several from one node in a period the last one counts. The error names what is wrong with it; then
// it is as if it had not come. Destinations that are not nodes of the plan, such as groups, are to be left out.
func (c *Controller) Observe(s Sample) error { return c.meter.observe(s) }

// Plan returns the plan that is in force as far as the controller knows. It must not be changed.
func (c *Controller) Plan() *plan.Plan { return c.plan }

// Traffic returns what is wanted on average, as far as the controller knows.
func (c *Controller) Traffic() traffic.Matrix { return c.average() }

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

// Worst returns the utilisation of the worst link by what is wanted on average, and which it is.
func (c *Controller) Worst() (topology.Hop, float64) { return c.worst(c.average(), c.plan) }

// Log appends to dst what was decided, and what others have done, the oldest first: the latest 1,000.
func (c *Controller) Log(dst []Decision) []Decision { return append(dst, c.log...) }

// Refused tells that changes of the latest decisions were not carried out, and why: the pairs have the VIDs that they had.
func (c *Controller) Refused(now monotime.Time, changes []plan.Change, why string) {
	for _, ch := range changes {
		c.setVID(ch.Pair, ch.From)
		c.tire(now, ch.Pair)
		c.note(Decision{At: now, Change: plan.Change{Pair: ch.Pair, From: ch.To, To: ch.From}, Reason: Refused, Why: "not carried out: " + why})
	}
	c.before, c.trial, c.streak = nil, nil, 0
}

// Advance ends the period, and appends what is to be done to out. It does nothing before the deadline.
func (c *Controller) Advance(now monotime.Time, out []Decision) []Decision {
	if now.Before(c.deadline) {
		return out
	}
	c.deadline = now.Add(c.cfg.Period)
	passed, ok := c.meter.endPeriod()
	if !ok {
		return out // the first samples: there is nothing to compare them with
	}
	c.adopt(now, passed)
	wanted := c.estimator.estimate(passed, c.paths, c.plan)
	c.remember(wanted)
	if c.before != nil {
		if back := c.evaluate(now, wanted); len(back) > 0 {
			return append(out, back...)
		}
	}
	return append(out, c.propose(now)...)
}
