package route

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan"
)

const (
	maxShownLinks   = 12 // of each outcome
	maxShownChanges = 40
)

func (o *routeOptimise) writeText(out io.Writer) error {
	r := &o.report
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, %s, %s\n", cli.Count(len(o.network.Hosts), "node"), o.topology, cli.Count(len(o.demand), "flow"), cli.Count(len(o.demand.Pairs()), "pair"))
	fmt.Fprintf(&b, "\n# Before: worst link at %.2f of its rate, sum of squares %.4g\n", r.Before.Worst, r.Before.Squares)
	o.writeLinks(&b, &r.Before)
	if len(r.Changes) > 0 {
		fmt.Fprintf(&b, "\n# After: worst link at %.2f of its rate, sum of squares %.4g\n", r.After.Worst, r.After.Squares)
		o.writeLinks(&b, &r.After)
	}
	fmt.Fprintf(&b, "# No plan has a worst link below %.2f: %v\n", r.LowerBound, r.Stopped)
	o.writeChanges(&b)
	if o.out != "" {
		fmt.Fprintf(&b, "\nwritten to %s\n", o.out)
		if o.file == "" {
			b.WriteString("(the addresses in it are made up: put in those of your nodes)\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeLinks writes the links that pairs share and that have more to carry than they can, or else
// the worst ones.
func (o *routeOptimise) writeLinks(b *strings.Builder, outcome *vlan.Outcome) {
	links := oneWay(outcome.Collisions())
	what := "shared beyond its rate"
	if len(links) == 0 {
		links, what = oneWay(outcome.WorstLinks()), "the worst"
		b.WriteString("# No pairs share a link beyond its rate.\n")
	}
	if len(links) == 0 {
		return
	}
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "# Link, %s\tLoad\tPairs\n", what)
	for i, l := range links {
		if i == maxShownLinks {
			fmt.Fprintf(table, "and %d more\n", len(links)-i)
			break
		}
		fmt.Fprintf(table, "%s\t%.2f\t%s\n", l.name(o.network), l.Utilisation, pairList(l.Pairs))
	}
	_ = table.Flush() // to a builder, which does not fail
}

// linkLoad is a link's load in one direction, or in both if they are the same.
type linkLoad struct {
	vlan.LinkUse
	both bool
}

func (l linkLoad) name(network *vlan.Topology) string {
	if l.both {
		return network.LinkName(l.Hop.Link)
	}
	return network.HopName(l.Hop)
}

// oneWay puts the two directions of a link together if the same pairs load them alike.
func oneWay(links []vlan.LinkUse) (loads []linkLoad) {
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

func (o *routeOptimise) writeChanges(b *strings.Builder) {
	changes := o.report.Changes
	fmt.Fprintf(b, "\n# Changes: %d of %s\n", len(changes), cli.Count(len(o.demand.Pairs()), "pair"))
	for i, c := range changes {
		if i == maxShownChanges {
			fmt.Fprintf(b, "and %d more (--json has all)\n", len(changes)-i)
			break
		}
		fmt.Fprintf(b, "%v\n", c)
	}
}
