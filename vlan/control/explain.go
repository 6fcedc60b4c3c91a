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

// note appends to the log.
func (c *Controller) note(d Decision) {
	if c.log = append(c.log, d); len(c.log) > maxLog {
		c.log = slices.Delete(c.log, 0, len(c.log)-maxLog)
	}
}

// explain returns the changes of some choices as decisions: what the worst link on each pair's path was, who shared it, and what the worst
// one on its new path will be.
func explain(now monotime.Time, p *optimize.Problem, choice []int32) (why []Decision) {
	before, after := p.NewAssignment(), p.NewAssignment()
	before.TakeCurrent()
	after.TakeAll(choice)
	for i, c := range choice {
		start := p.Pairs[i].Start
		if c == start {
			continue
		}
		pair := p.Pairs[i].Pair
		d := Decision{At: now, Change: plan.Change{Pair: pair, From: p.Current.PairVID(pair.A, pair.B), To: p.Vids[c]}, Reason: Relieve}
		_, expected := after.WorstOf(i, c)
		if start == optimize.NoChoice {
			d.Why = fmt.Sprintf("VID %d does not connect it; expected %.2f of the worst link on its way", d.Change.From, expected)
		} else {
			hop, u := before.WorstOf(i, start)
			d.Why = fmt.Sprintf("link %s was at %.2f of its rate, %s; expected %.2f", p.Topology.HopName(topology.HopAt(int(hop))), u, shared(before.Sharers(hop)), expected)
		}
		why = append(why, d)
	}
	return why
}

// shared names the pairs that share a link.
func shared(pairs []plan.Pair) string {
	if len(pairs) == 1 {
		return fmt.Sprintf("%v alone", pairs[0])
	}
	names := make([]string, 0, maxNamed)
	for _, p := range pairs[:min(len(pairs), maxNamed)] {
		names = append(names, p.String())
	}
	last := names[len(names)-1]
	if more := len(pairs) - len(names); more > 0 {
		names, last = append(names, ""), fmt.Sprintf("%d more", more)
	}
	return fmt.Sprintf("pairs %s and %s shared it", strings.Join(names[:len(names)-1], ", "), last)
}

// whyBack says why changes are taken back.
func (c *Controller) whyBack(hop topology.Hop, is, would float64) string {
	return fmt.Sprintf("taken back: link %s is at %.2f of its rate, and the worst link would be at %.2f without the change", c.topology.HopName(hop), is, would)
}
