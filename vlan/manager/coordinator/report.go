package coordinator

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// NodeState is the outcome of an Apply on one node.
type NodeState int

// States of nodes.
const (
	NodeUnchanged NodeState = iota // it has its old plan
	NodePrepared                   // it has its old plan, and forgets the change when its lease is over
	NodeChanged                    // it has the plan
	NodeBack                       // it had the plan for a moment, and has its old one again
	NodeUnknown                    // it could not be asked, or has another plan since: see its Error
)

// String names the state.
func (s NodeState) String() string {
	names := [...]string{"unchanged", "prepared", "changed", "back", "unknown"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("NodeState(%d)", int(s))
	}
	return names[s]
}

// MarshalText implements encoding.TextMarshaler.
func (s NodeState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Report is the outcome of an Apply.
type Report struct {
	Schema int           `json:"schema"`
	ID     string        `json:"id"`      // of the change, in the managers' history
	PlanID string        `json:"plan_id"` // of the plan
	Nodes  []NodeOutcome `json:"nodes"`
	Pairs  int           `json:"pairs"`             // of changed nodes, that had another VID at one end at least
	DryRun bool          `json:"dry_run,omitempty"` // nothing has changed: numbers are of what would
}

// NodeOutcome is the outcome of an Apply on one node.
type NodeOutcome struct {
	Manager    string        `json:"manager"`
	MAC        transport.MAC `json:"mac"`
	Name       string        `json:"name,omitempty"`
	State      NodeState     `json:"state"`
	PlanBefore string        `json:"plan_before,omitempty"` // id of its old plan
	Version    api.Version   `json:"version,omitempty"`     // of its routes, if they have changed
	Routes     int           `json:"routes"`                // that have changed
	Late       int           `json:"late,omitempty"`        // programs that have not confirmed them in time
	Warning    string        `json:"warning,omitempty"`
	Error      string        `json:"error,omitempty"`
}

func (g *group) report() *Report {
	r := &Report{Schema: api.Schema, ID: g.id, PlanID: api.PlanID(g.plan), Pairs: g.changedPairs(),
		DryRun: g.options.DryRun}
	for _, m := range g.nodes {
		o := NodeOutcome{Manager: m.client.Addr().String(), State: m.state, Version: m.answer.Version,
			Routes: m.answer.Routes, Late: m.answer.Late, Warning: m.answer.Warning}
		if m.table != nil {
			o.MAC, o.PlanBefore = m.table.MAC, m.table.PlanID
			if n, ok := g.plan.NodeOf(o.MAC); ok {
				o.Name = g.plan.Nodes[n].Name
			}
		}
		if g.wouldJoin(m) {
			o.Routes = g.wouldChange(m)
		}
		if m.err != nil {
			o.Error = m.err.Error()
		}
		r.Nodes = append(r.Nodes, o)
	}
	return r
}

// changedPairs counts the pairs of changed nodes that had another VID at one end at least.
func (g *group) changedPairs() (pairs int) {
	var changed []*member
	for _, m := range g.nodes {
		if m.state == NodeChanged || g.wouldJoin(m) {
			changed = append(changed, m)
		}
	}
	number := numbersOf(g.plan)
	for i, a := range changed {
		from := number[a.table.MAC]
		for _, b := range changed[:i] {
			vid := g.plan.PairVID(from, number[b.table.MAC])
			if a.vidTo(b.table.MAC) != vid || b.vidTo(a.table.MAC) != vid {
				pairs++
			}
		}
	}
	return pairs
}
