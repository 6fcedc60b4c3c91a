package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/vlan/plan"
)

// Previous returns the plan that all nodes had before the present one, and until when: what Apply goes back to. The nodes have to agree
// on it; where they do not, since one was changed alone, the error says which.
func Previous(ctx context.Context, managers []*Client) (plan *plan.Plan, until time.Time, err error) {
	g := &group{}
	for _, c := range managers {
		g.nodes = append(g.nodes, &member{client: c})
	}
	found := make([]*Past, len(managers))
	err = g.each(ctx, "ask", func(ctx context.Context, m *member) (err error) {
		if m.table, err = m.client.Table(ctx); err == nil {
			found[slices.Index(g.nodes, m)], err = previous(ctx, m.client, m.table)
		}
		return err
	})
	if err == nil && len(found) == 0 {
		err = errors.New("no managers")
	}
	if err != nil {
		return nil, until, fmt.Errorf("roll back: %w", err)
	}
	var now, before []NodeStatus
	for i, m := range g.nodes {
		n := statusOf(m.client.addr, m.table, nil)
		now = append(now, n)
		n.PlanID, n.Reason = PlanID(&found[i].Plan.Plan), found[i].Reason
		before = append(before, n)
	}
	if err := differing(before); err != nil {
		if differ := differing(now); differ != nil {
			return nil, until, fmt.Errorf("roll back: %w", differ)
		}
		return nil, until, fmt.Errorf("roll back: before the present plan, %w", err)
	}
	return &found[0].Plan.Plan, found[0].Until, nil
}

// previous returns the latest past of a manager whose plan is not the present one.
func previous(ctx context.Context, c *Client, t *Table) (*Past, error) {
	h, err := c.History(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Backward(h.Past) {
		if p.Plan != nil && !same(p.Plan, t.Plan) {
			return &p, nil
		}
	}
	return nil, fmt.Errorf("manager %v: %w", c.addr, errNoHistory)
}

// same reports whether two plans are equal.
func same(a, b *Plan) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}
