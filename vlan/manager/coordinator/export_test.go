package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Troubles has a control meet an error, or none, in each of some periods, and returns what it logs.
func Troubles(errs ...error) string {
	var told strings.Builder
	c := &loop{options: ControlOptions{Logger: slog.New(slog.NewTextHandler(&told, nil))}}
	for _, err := range errs {
		c.trouble(err)
	}
	return told.String()
}

// ReadTwice reads a node as two periods of a control do.
func ReadTwice(ctx context.Context, node *manager.Client) error {
	c := &loop{nodes: membersOf([]*manager.Client{node})}
	return errors.Join(c.read(ctx), c.read(ctx))
}

// CarryOut carries out what a control has decided that took p for the plan of the nodes.
func CarryOut(
	ctx context.Context, nodes []*manager.Client, p *plan.Plan, changes ...plan.Change,
) (*Report, error) {
	c := &loop{nodes: membersOf(nodes), plan: p}
	var decisions []control.Decision
	for _, change := range changes {
		decisions = append(decisions, control.Decision{Change: change})
	}
	return c.carryOut(ctx, decisions)
}
