package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Decision is a change of a pair's VID, and its cause. All decisions of one Advance belong
// together.
type Decision struct {
	At     monotime.Time
	Change plan.Change
	Reason Reason
	Why    string // one line, with the numbers
}

// String formats d as "pair 2-8: VID 3 -> 1: ..." and why.
func (d Decision) String() string { return fmt.Sprintf("pair %v: %s", d.Change, d.Why) }

// Reason is the kind of cause of a decision.
type Reason int

// The reasons.
const (
	Relieve  Reason = iota // the change lowers the worst link
	Revert                 // a change made the worst link worse, or would now
	Refused                // a change was not carried out; in Log alone
	External               // a change came from outside; in Log alone
)

// String gives the reason in a word.
func (r Reason) String() string { return word(r, "relieve", "revert", "refused", "external") }

// State is what a Controller is doing.
//
//	state       at the end of a period                        next        decides
//	Watching    another plan is better by Gain                Waiting     -
//	Waiting     it still is, for fewer than Hysteresis periods Waiting    -
//	Waiting     it is not, or worse in one of these periods   Watching    -
//	Waiting     it still is, for Hysteresis periods           Evaluating  up to MaxChanges pairs
//	Evaluating  the plan before would be better now           Watching    the changes back
//	Evaluating  it would not, and there is more to gain       Evaluating  the next pairs
//	Evaluating  it would not                                  Watching    -
type State int

// The states.
const (
	Watching State = iota
	Waiting
	Evaluating
)

// String names the state.
func (s State) String() string { return word(s, "watching", "waiting", "evaluating") }

// word returns the name of a small number.
func word[T ~int | ~uint8](i T, names ...string) string {
	if int(i) >= 0 && int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown (%d)", i)
}

func reverse(ch plan.Change) plan.Change { return plan.Change{Pair: ch.Pair, From: ch.To, To: ch.From} }

// maxLog bounds the decisions that a Controller keeps, and maxNamed the pairs, or nodes, that an
// explanation names.
const maxLog, maxNamed = 1000, 6

// note appends to the log.
func (c *Controller) note(d Decision) {
	c.log = append(c.log, d)
	c.log = slices.Delete(c.log, 0, max(0, len(c.log)-maxLog))
}

// explain returns the changes of a new plan as decisions: the worst link on each pair's path, the
// pairs that shared it, and the worst link on the new path.
func (c *Controller) explain(now monotime.Time, r *optimize.Report) (decisions []Decision) {
	for _, ch := range r.Changes {
		d := Decision{At: now, Change: ch, Reason: Relieve}
		before, after := c.worstOf(ch.Pair, &r.Before), c.worstOf(ch.Pair, &r.After)
		if len(before.Pairs) == 0 {
			d.Why = fmt.Sprintf("VID %d does not connect it; expected %.2f of the worst link on its way",
				ch.From, after.Utilisation)
		} else {
			d.Why = fmt.Sprintf("link %s was at %.2f of its rate, %s; expected %.2f",
				c.topology.HopName(before.Hop), before.Utilisation, shared(before.Pairs), after.Utilisation)
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// worstOf returns the link with the highest utilisation that a pair loads, the first of equals.
func (c *Controller) worstOf(pair plan.Pair, o *optimize.Outcome) (worst optimize.LinkUse) {
	for _, l := range o.Links {
		if l.Utilisation > worst.Utilisation && slices.Contains(l.Pairs, pair) {
			worst = l
		}
	}
	return worst
}

// shared names the pairs that share a link.
func shared(pairs []plan.Pair) string {
	if len(pairs) == 1 {
		return fmt.Sprintf("%v alone", pairs[0])
	}
	return fmt.Sprintf("pairs %s shared it", list(pairs))
}

// list names things, the first of many.
func list[T any](all []T) string {
	names := make([]string, 0, maxNamed)
	for _, one := range all[:min(len(all), maxNamed)] {
		names = append(names, fmt.Sprint(one))
	}
	last := names[len(names)-1]
	if more := len(all) - len(names); more > 0 {
		names, last = append(names, ""), fmt.Sprintf("%d more", more)
	}
	if len(names) == 1 {
		return last
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + last
}

// explainRevert says why changes are reverted.
func (c *Controller) explainRevert(hop topology.Hop, is, would float64) string {
	return fmt.Sprintf("reverted: link %s is at %.2f of its rate, "+
		"and the worst link would be at %.2f without the change", c.topology.HopName(hop), is, would)
}
