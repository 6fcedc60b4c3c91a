package coordinator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// Survey asks all managers at once for their plans. The Status has the answers, and the errors of
// those that do not answer.
func Survey(ctx context.Context, managers []*manager.Client) *Status {
	s := &Status{Schema: api.Schema, Nodes: make([]NodeStatus, len(managers)), errs: make([]error, len(managers))}
	var all sync.WaitGroup
	for i, c := range managers {
		all.Go(func() {
			t, err := c.Table(ctx)
			s.Nodes[i], s.errs[i] = statusOf(c, t, err), err
		})
	}
	all.Wait()
	return s
}

// Status is the plans of several nodes.
type Status struct {
	Schema int          `json:"schema"`
	Nodes  []NodeStatus `json:"nodes"` // in the managers' order
	errs   []error
}

// NodeStatus is the plan of one node.
type NodeStatus struct {
	Manager string        `json:"manager"`
	MAC     transport.MAC `json:"mac"`
	Name    string        `json:"name,omitempty"`
	PlanID  string        `json:"plan_id,omitempty"` // empty: it has none
	// PlanVersion is the version of the latest change of the plan or of the operator's pairs,
	// Reason the reason given for it.
	PlanVersion api.Version `json:"plan_version,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	Pairs       int         `json:"pairs"`              // whose VID is not the plan's
	Programs    int         `json:"programs"`           // that send by its routes
	Prepared    string      `json:"prepared,omitempty"` // id of a change that waits for its commit
	Error       string      `json:"error,omitempty"`    // why it could not be asked
}

func statusOf(c *manager.Client, t *api.Table, err error) NodeStatus {
	n := NodeStatus{Manager: c.Addr().String()}
	if err != nil {
		n.Error = err.Error()
		return n
	}
	n.MAC, n.Name, n.Programs = t.MAC, t.Name, len(t.Sessions)
	n.PlanID, n.PlanVersion, n.Reason = t.PlanID, t.PlanVersion, t.PlanReason
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

// label is the name of a node in messages: n3 at unix:/run/m3.
func (n *NodeStatus) label() string { return cmp.Or(n.Name, n.MAC.String()) + " at " + n.Manager }

// Err returns nil if all managers answer and have one and the same plan. Else it is a *PlansError,
// or a *GroupError of those that could not be asked, or both.
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
