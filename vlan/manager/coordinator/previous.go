package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Previous returns the plan that all nodes had before the present one, and until when: it is for
// Apply with Rollback. The nodes have to agree on it; where they do not, since one was changed
// alone, the error says which.
func Previous(ctx context.Context, managers []*manager.Client) (p *plan.Plan, until time.Time, err error) {
	g := &group{nodes: membersOf(managers), options: ApplyOptions{Lease: DefaultLease, Rollback: true}}
	err = g.ask(ctx)
	if err == nil && len(g.nodes) == 0 {
		err = errors.New("no managers")
	}
	if err != nil {
		return nil, until, fmt.Errorf("roll back: %w", err)
	}
	before := func(m *member) (id, reason string) { return api.PlanID(&m.past.Plan.Plan), m.past.Reason }
	if err := differing(g.nodes, before); err != nil {
		if differ := differing(g.nodes, (*member).present); differ != nil {
			return nil, until, fmt.Errorf("roll back: %w", differ)
		}
		return nil, until, fmt.Errorf("roll back: before the present plan, %w", err)
	}
	past := g.nodes[0].past
	return &past.Plan.Plan, past.Until, nil
}

// readPast reads the latest setting of a node whose plan is not the present one.
func (m *member) readPast(ctx context.Context) error {
	h, err := m.client.History(ctx)
	if err != nil {
		return err
	}
	for _, past := range slices.Backward(h.Past) {
		if past.Plan != nil && !past.Plan.Equal(m.table.Plan) {
			m.past = &past
			return nil
		}
	}
	return fmt.Errorf("manager %v: %w", m.client.Addr(), api.ErrNoHistory)
}
