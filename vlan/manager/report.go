package manager

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
)

// NodeState says what became of a node in an Apply.
type NodeState int

// States of nodes.
const (
	NodeUnchanged NodeState = iota // it has what it had
	NodePrepared                   // it has what it had, and forgets the change when its lease is over
	NodeChanged                    // it has the plan
	NodeBack                       // it had the plan for a moment, and has again what it had
	NodeUnknown                    // it could not be asked: it has what it had or the plan
)

// String names the state.
func (s NodeState) String() string {
	switch s {
	case NodeUnchanged:
		return "unchanged"
	case NodePrepared:
		return "prepared"
	case NodeChanged:
		return "changed"
	case NodeBack:
		return "back"
	case NodeUnknown:
		return "unknown"
	}
	return fmt.Sprintf("NodeState(%d)", int(s))
}

// MarshalText implements encoding.TextMarshaler.
func (s NodeState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Report is what became of an Apply.
type Report struct {
	Schema int           `json:"schema"`
	ID     string        `json:"id"`      // of the change, in the managers' history
	PlanID string        `json:"plan_id"` // of the plan: see the function of that name
	Nodes  []NodeOutcome `json:"nodes"`
	// Pairs is how many pairs of managed nodes had another VID at one end at least.
	Pairs int `json:"pairs"`
	// The two ends of a changed pair disagreed for this long, as far as the coordinator's clock can tell: of each pair the change
	// of one end took place between two instants, and that of the other between two others. Least is what is certain, of the pair for which
	// it is most; Most is what is possible. Both are meaningless for programs that are Late.
	DisagreedLeast time.Duration `json:"disagreed_least_ns"`
	DisagreedMost  time.Duration `json:"disagreed_most_ns"`
	// WorstPair is the one of DisagreedMost, by numbers of the plan's nodes.
	WorstPair string `json:"worst_pair,omitempty"`
}

// NodeOutcome is what became of one node.
type NodeOutcome struct {
	Manager    string        `json:"manager"`
	MAC        transport.MAC `json:"mac"`
	Name       string        `json:"name,omitempty"`
	State      NodeState     `json:"state"`
	PlanBefore string        `json:"plan_before,omitempty"` // id of the plan that it had
	Version    uint64        `json:"version,omitempty"`     // of its table, if it has changed
	Routes     int           `json:"routes"`                // that have changed
	Late       int           `json:"late,omitempty"`        // programs that had not said in time that they send by them
	Warning    string        `json:"warning,omitempty"`
	Error      string        `json:"error,omitempty"`
}

func (g *group) report() *Report {
	r := &Report{Schema: Schema, ID: g.id, PlanID: PlanID(g.plan)}
	for _, m := range g.nodes {
		o := NodeOutcome{Manager: m.client.addr.String(), State: m.state, Version: m.answer.Version, Routes: m.answer.Routes, Late: m.answer.Late, Warning: m.answer.Warning}
		if m.table != nil {
			o.MAC, o.PlanBefore = m.table.MAC, m.table.PlanID
			if n, ok := g.plan.NodeOf(o.MAC); ok {
				o.Name = g.plan.Nodes[n].Name
			}
		}
		if m.err != nil {
			o.Error = m.err.Error()
		}
		r.Nodes = append(r.Nodes, o)
	}
	g.disagreement(r)
	return r
}

// disagreement goes through the pairs of nodes that have changed.
func (g *group) disagreement(r *Report) {
	var changed []*side
	for _, m := range g.nodes {
		if m.table == nil || m.state != NodeChanged {
			continue
		}
		n, _ := g.plan.NodeOf(m.table.MAC)
		before := make(map[transport.MAC]transport.VID, len(m.table.Routes))
		for _, route := range m.table.Routes {
			before[route.Dst] = route.VID
		}
		changed = append(changed, &side{m, n, before})
	}
	for i, a := range changed {
		for _, b := range changed[:i] {
			if vid := g.plan.PairVID(a.node, b.node); a.vidTo(b) != vid || b.vidTo(a) != vid {
				r.add(a, b)
			}
		}
	}
}

// side is a node as an end of pairs.
type side struct {
	*member
	node   int // of the plan
	before map[transport.MAC]transport.VID
}

// vidTo returns the VID that a sent to b with before.
func (a *side) vidTo(b *side) transport.VID {
	if vid, ok := a.before[b.table.MAC]; ok {
		return vid
	}
	return a.before[transport.Broadcast]
}

// add takes in for how long the ends of a pair disagreed.
func (r *Report) add(a, b *side) {
	r.Pairs++
	first, last := a.earliest, a.latest
	if b.earliest.Before(first) {
		first = b.earliest
	}
	if b.latest.After(last) {
		last = b.latest
	}
	if most := last.Sub(first); most > r.DisagreedMost {
		r.DisagreedMost, r.WorstPair = most, plan.PairOf(a.node, b.node).String()
	}
	r.DisagreedLeast = max(r.DisagreedLeast, a.earliest.Sub(b.latest), b.earliest.Sub(a.latest))
}
