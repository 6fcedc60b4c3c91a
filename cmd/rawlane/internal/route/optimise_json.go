package route

import (
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/optimize"
)

// optimiseSchema is the version of optimiseResult.
const optimiseSchema = 1

// optimiseResult is the result of an optimisation as JSON.
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

// result makes the JSON.
func (o *optimiseVerb) result() *optimiseResult {
	r := &o.report
	result := &optimiseResult{
		Schema: optimiseSchema, Topology: o.topology, File: o.file, Pattern: o.pattern, Traffic: o.traffic,
		Out: o.out, MaxChanges: o.options.MaxChanges, PerChange: o.options.PerChange,
		Nodes: len(o.network.Hosts), Flows: len(o.demand),
		Before: o.outcome(&r.Before), After: o.outcome(&r.After), LowerBound: r.LowerBound,
		Stopped: r.Stopped.String(), Tried: r.Tried, Changes: []optimiseChange{},
	}
	for _, c := range r.Changes {
		result.Changes = append(result.Changes, optimiseChange{[2]int{c.Pair.A, c.Pair.B}, c.From, c.To})
	}
	return result
}

func (o *optimiseVerb) outcome(from *optimize.Outcome) optimiseOutcome {
	result := optimiseOutcome{Worst: from.Worst, Squares: from.Squares, Links: []optimiseLink{}}
	for _, l := range from.Links {
		result.Links = append(result.Links,
			optimiseLink{o.network.HopName(l.Hop), l.Utilisation, pairNumbers(l.Pairs)})
	}
	return result
}
