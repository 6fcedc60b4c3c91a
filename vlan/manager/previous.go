package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/vlan"
)

// Previous returns the plan that all nodes had before the present one, and until when: what Apply goes back to. The nodes have to agree
// on it; where they do not, since one was changed alone, the error says which.
func Previous(ctx context.Context, managers []*Client) (plan *vlan.Plan, until time.Time, err error) {
	g := &group{}
	for _, c := range managers {
		g.nodes = append(g.nodes, &member{client: c})
	}
	found := make([]*Past, len(managers))
	err = g.each(ctx, "ask", func(ctx context.Context, m *member) (err error) {
		found[slices.Index(g.nodes, m)], err = previous(ctx, m.client)
		return err
	})
	if err == nil && len(found) == 0 {
		err = errors.New("no managers")
	}
	if err != nil {
		return nil, until, fmt.Errorf("roll back: %w", err)
	}
	for i, p := range found[1:] {
		if !same(p.Plan, found[0].Plan) {
			return nil, until, fmt.Errorf("roll back: managers %v and %v had different plans before (apply the one that is wanted: rawlane route apply)",
				managers[0].addr, managers[i+1].addr)
		}
	}
	return &found[0].Plan.Plan, found[0].Until, nil
}

// previous returns the latest past of a manager whose plan is not the present one.
func previous(ctx context.Context, c *Client) (*Past, error) {
	t, err := c.Table(ctx)
	if err != nil {
		return nil, err
	}
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
