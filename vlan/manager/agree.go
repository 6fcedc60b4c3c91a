package manager

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
)

// PlanID names a plan by what is in it: equal plans have one name, on all nodes and whoever brought them, and others another. It is 12
// hexadecimal digits, of SHA-256, and empty for no plan.
func PlanID(p *plan.Plan) string {
	if p == nil {
		return ""
	}
	b, err := json.Marshal(Plan{*p})
	if err != nil {
		return "" // it has addresses, numbers and text alone: it is JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// Survey asks all managers at once which plan they have. What it finds is in the Status: also that some do not answer.
func Survey(ctx context.Context, managers []*Client) *Status {
	s := &Status{Schema: Schema, Nodes: make([]NodeStatus, len(managers)), errs: make([]error, len(managers))}
	var all sync.WaitGroup
	for i, c := range managers {
		all.Go(func() {
			t, err := c.Table(ctx)
			s.Nodes[i], s.errs[i] = statusOf(c.addr, t, err), err
		})
	}
	all.Wait()
	return s
}

// Status is which plans the managers of several nodes have.
type Status struct {
	Schema int          `json:"schema"`
	Nodes  []NodeStatus `json:"nodes"` // in the managers' order
	errs   []error
}

// NodeStatus is which plan one manager has.
type NodeStatus struct {
	Manager string        `json:"manager"`
	MAC     transport.MAC `json:"mac"`
	Name    string        `json:"name,omitempty"`
	PlanID  string        `json:"plan_id,omitempty"` // empty: it has none
	// PlanVersion is the version of its table at which the plan, or the operator's pairs, changed last; Reason is why.
	PlanVersion uint64 `json:"plan_version,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Pairs       int    `json:"pairs"`              // whose VID is not the plan's: an operator's, a program's or a failover's wish
	Programs    int    `json:"programs"`           // that send by its routes
	Prepared    string `json:"prepared,omitempty"` // id of a change that waits to be committed
	Error       string `json:"error,omitempty"`    // why it could not be asked
}

func statusOf(addr Addr, t *Table, err error) NodeStatus {
	n := NodeStatus{Manager: addr.String()}
	if err != nil {
		n.Error = err.Error()
		return n
	}
	n.MAC, n.Name, n.PlanID, n.PlanVersion, n.Reason, n.Programs = t.MAC, t.Name, t.PlanID, t.PlanVersion, t.PlanReason, len(t.Sessions)
	for _, p := range t.Pairs {
		if !p.Covered {
			n.Pairs++
		}
	}
	if t.Prepared != nil {
		n.Prepared = t.Prepared.ID
	}
	return n
}

// Err returns nil if all managers answer and have one and the same plan. Else it is a *PlansError, or a *GroupError of those that could not be asked,
// or both.
func (s *Status) Err() error {
	failed := &GroupError{Act: "ask"}
	var found []NodeStatus
	for i, n := range s.Nodes {
		if s.errs[i] != nil {
			failed.Nodes = append(failed.Nodes, s.errs[i])
			continue
		}
		found = append(found, n)
	}
	err := differing(found)
	if len(failed.Nodes) > 0 {
		return errors.Join(failed, err)
	}
	return err
}

// ErrPlansDiffer: the managers of a cluster have different plans, and so the ends of pairs may send by different VIDs, which switches flood.
var ErrPlansDiffer = errors.New("managers have different plans")

// PlansError says which nodes have which plan, where they should have one. It is ErrPlansDiffer.
type PlansError struct {
	Plans []HeldPlan // that of most nodes first
}

// HeldPlan is a plan, and the nodes that have it.
type HeldPlan struct {
	ID     string   // empty: they have none
	Reason string   // that was given for it
	Nodes  []string // their names or addresses, and their managers
}

// Is makes errors.Is(err, ErrPlansDiffer) hold.
func (e *PlansError) Is(target error) bool { return target == ErrPlansDiffer }

func (e *PlansError) Error() string {
	var s strings.Builder
	s.WriteString(ErrPlansDiffer.Error())
	for i, p := range e.Plans {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		what := "plan " + p.ID
		if p.ID == "" {
			what = "no plan"
		}
		if p.Reason != "" {
			what += fmt.Sprintf(" (%s)", p.Reason)
		}
		fmt.Fprintf(&s, "%s%s: %s", separator, what, someOf(p.Nodes))
	}
	s.WriteString(" (give all of them one: rawlane route apply)")
	return s.String()
}

// someOf lists names, up to maxNamed.
func someOf(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// label is what messages call a node: n3 at unix:/run/m3.
func (n *NodeStatus) label() string { return cmp.Or(n.Name, n.MAC.String()) + " at " + n.Manager }

// differing returns a *PlansError unless all nodes have the same plan.
func differing(nodes []NodeStatus) error {
	e := new(PlansError)
	for _, n := range nodes {
		i := slices.IndexFunc(e.Plans, func(p HeldPlan) bool { return p.ID == n.PlanID })
		if i < 0 {
			i = len(e.Plans)
			e.Plans = append(e.Plans, HeldPlan{ID: n.PlanID, Reason: n.Reason})
		}
		e.Plans[i].Nodes = append(e.Plans[i].Nodes, n.label())
	}
	if len(e.Plans) < 2 {
		return nil
	}
	slices.SortStableFunc(e.Plans, func(a, b HeldPlan) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	return e
}
