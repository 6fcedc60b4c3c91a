package route

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/topology"
)

const (
	maxShownLinks   = 12 // of each outcome
	maxShownChanges = 40
)

func (o *optimiseVerb) writeText(out io.Writer) {
	r := &o.report
	fmt.Fprintf(out, "%s on %s, %s, %s\n", cli.Count(len(o.network.Hosts), "node"), o.topology,
		cli.Count(len(o.demand), "flow"), cli.Count(len(o.demand.Pairs()), "pair"))
	o.writeOutcome(out, "Before", &r.Before)
	if len(r.Changes) > 0 {
		o.writeOutcome(out, "After", &r.After)
	}
	fmt.Fprintf(out, "# No plan has a worst link below %.2f: %v\n", r.LowerBound, r.Stopped)
	o.writeChanges(out)
	if o.out != "" {
		fmt.Fprintf(out, "\nwritten to %s\n", o.out)
		if o.file == "" {
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
			fmt.Fprintf(w, "%s\t%.2f\t%s\n", l.name(o.network), l.Utilisation, pairList(l.Pairs))
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
