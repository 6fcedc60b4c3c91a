package route

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// optimiseSchema is the version of optimiseResult.
const optimiseSchema = 1

// optimiseResult is an optimisation as JSON.
type optimiseResult struct {
	Schema     int              `json:"schema"`
	Topology   string           `json:"topology"`
	File       string           `json:"file,omitempty"`
	Pattern    string           `json:"pattern,omitempty"`
	Traffic    string           `json:"traffic,omitempty"`
	MaxChanges int              `json:"max_changes"`
	PerChange  float64          `json:"per_change"`
	Nodes      int              `json:"nodes"`
	Flows      int              `json:"flows"`
	Before     optimiseOutcome  `json:"before"`
	After      optimiseOutcome  `json:"after"`
	LowerBound float64          `json:"lower_bound"`
	Stopped    string           `json:"stopped"`
	Tried      int              `json:"tried"`
	Changes    []optimiseChange `json:"changes"`
	Out        string           `json:"out,omitempty"`
}

type optimiseOutcome struct {
	Worst   float64        `json:"worst"`
	Squares float64        `json:"squares"`
	Links   []optimiseLink `json:"links"` // each direction by itself
}

type optimiseLink struct {
	Link        string   `json:"link"`
	Utilisation float64  `json:"utilisation"`
	Pairs       [][2]int `json:"pairs"`
}

type optimiseChange struct {
	Pair [2]int        `json:"pair"`
	From transport.VID `json:"from"`
	To   transport.VID `json:"to"`
}

// fill completes the JSON.
func (o *optimiseVerb) fill() {
	r := &o.report
	o.Schema, o.Nodes, o.Flows = optimiseSchema, len(o.network.Hosts), len(o.demand)
	o.Before, o.After, o.LowerBound = o.outcome(&r.Before), o.outcome(&r.After), r.LowerBound
	o.Stopped, o.Tried, o.Changes = r.Stopped.String(), r.Tried, []optimiseChange{}
	for _, c := range r.Changes {
		o.Changes = append(o.Changes, optimiseChange{[2]int{c.Pair.A, c.Pair.B}, c.From, c.To})
	}
}

func (o *optimiseVerb) outcome(from *optimize.Outcome) optimiseOutcome {
	result := optimiseOutcome{Worst: from.Worst, Squares: from.Squares, Links: []optimiseLink{}}
	for _, l := range from.Links {
		result.Links = append(result.Links,
			optimiseLink{o.network.HopName(l.Hop), l.Utilisation, pairNumbers(l.Pairs)})
	}
	return result
}

// pairNumbers is pairs as JSON has them: never null.
func pairNumbers(pairs []plan.Pair) [][2]int {
	numbers := make([][2]int, len(pairs))
	for i, p := range pairs {
		numbers[i] = [2]int{p.A, p.B}
	}
	return numbers
}

const (
	maxShownLinks   = 12 // of each outcome
	maxShownChanges = 40
)

// verdict says how good the plan is. Where few changes are allowed, the best may be far from the
// bound, which is for all plans.
func (o *optimiseVerb) verdict() string {
	r := &o.report
	if r.Stopped == optimize.Optimal && fmt.Sprintf("%.2f", r.After.Worst) != fmt.Sprintf("%.2f", r.LowerBound) {
		return fmt.Sprintf("This plan is %v of those allowed; no plan at all has a worst link below %.2f",
			r.Stopped, r.LowerBound)
	}
	return fmt.Sprintf("No plan has a worst link below %.2f: %v", r.LowerBound, r.Stopped)
}

func (o *optimiseVerb) writeText(out io.Writer) {
	r := &o.report
	fmt.Fprintf(out, "%s on %s, %s, %s\n", cli.Count(len(o.network.Hosts), "node"), o.Topology,
		cli.Count(len(o.demand), "flow"), cli.Count(len(o.demand.Pairs()), "pair"))
	o.writeOutcome(out, "Before", &r.Before)
	if len(r.Changes) > 0 {
		o.writeOutcome(out, "After", &r.After)
	}
	fmt.Fprintln(out, "#", o.verdict())
	o.writeChanges(out)
	if o.Out != "" {
		fmt.Fprintf(out, "\nwritten to %s\n", o.Out)
		if o.File == "" {
			fmt.Fprintln(out, "(the addresses in it are made up: put in those of your nodes)")
		}
	}
}

func (o *optimiseVerb) writeOutcome(out io.Writer, when string, outcome *optimize.Outcome) {
	fmt.Fprintf(out, "\n# %s: worst link at %.2f of its rate, sum of squares %.4g\n",
		when, outcome.Worst, outcome.Squares)
	o.writeLinks(out, outcome)
}

// writeLinks writes the links that pairs load beyond their rate, or else the links with the highest
// load.
func (o *optimiseVerb) writeLinks(out io.Writer, outcome *optimize.Outcome) {
	links := oneWay(outcome.Collisions())
	what := "shared beyond its rate"
	if len(links) == 0 {
		links, what = oneWay(outcome.WorstLinks()), "the worst"
		fmt.Fprintln(out, "# No pairs share a link beyond its rate.")
	}
	if len(links) == 0 {
		return
	}
	cli.Table(out, func(w io.Writer) {
		fmt.Fprintf(w, "# Link, %s\tLoad\tPairs\n", what)
		for i, l := range links {
			if i == maxShownLinks {
				fmt.Fprintf(w, "and %d more\n", len(links)-i)
				break
			}
			fmt.Fprintf(w, "%s\t%.2f\t%s\n", l.name(o.network), l.Utilisation, pairList(pairNumbers(l.Pairs)))
		}
	})
}

// linkLoad is a link's load in one direction, or in both if they are the same.
type linkLoad struct {
	optimize.LinkUse
	both bool
}

func (l linkLoad) name(network *topology.Topology) string {
	if l.both {
		return network.LinkName(l.Hop.Link)
	}
	return network.HopName(l.Hop)
}

// oneWay merges the two directions of a link if the same pairs load both alike.
func oneWay(links []optimize.LinkUse) (loads []linkLoad) {
	at := make(map[int]int) // by link
	for _, l := range links {
		i, seen := at[l.Hop.Link]
		if seen && loads[i].Utilisation == l.Utilisation && slices.Equal(loads[i].Pairs, l.Pairs) {
			loads[i].both = true
			continue
		}
		at[l.Hop.Link] = len(loads)
		loads = append(loads, linkLoad{LinkUse: l})
	}
	slices.SortStableFunc(loads, func(a, b linkLoad) int { return cmp.Compare(b.Utilisation, a.Utilisation) })
	return loads
}

func (o *optimiseVerb) writeChanges(out io.Writer) {
	changes := o.report.Changes
	fmt.Fprintf(out, "\n# Changes: %d of %s\n", len(changes), cli.Count(len(o.demand.Pairs()), "pair"))
	for i, c := range changes {
		if i == maxShownChanges {
			fmt.Fprintf(out, "and %d more (--json has all)\n", len(changes)-i)
			break
		}
		fmt.Fprintf(out, "%v\n", c)
	}
}
