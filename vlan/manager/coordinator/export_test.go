package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
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

// SampleOf reads a node as a control does, and returns what its controller is told.
func SampleOf(ctx context.Context, node *manager.Client, p *plan.Plan) (control.Sample, error) {
	c := &loop{nodes: membersOf([]*manager.Client{node})}
	if err := c.read(ctx); err != nil {
		return control.Sample{}, err
	}
	return sampleOf(c.nodes[0], numbersOf(p)), nil
}

// Periods is a control whose periods a test begins.
type Periods struct {
	c   *loop
	Log *strings.Builder // what it logs
}

// BeginControl begins one.
func BeginControl(ctx context.Context, nodes []*manager.Client, network *topology.Topology) (*Periods, error) {
	p := &Periods{Log: new(strings.Builder)}
	o := ControlOptions{Topology: network, Logger: slog.New(slog.NewTextHandler(p.Log, nil))}
	p.c = &loop{options: o, nodes: membersOf(nodes)}
	return p, p.c.begin(ctx)
}

// Pass has a period pass.
func (p *Periods) Pass(ctx context.Context) { p.c.period(ctx) }

// PlanID is that of the plan which it takes for the one in force.
func (p *Periods) PlanID() string { return api.PlanID(p.c.plan) }

// CarryOut carries out a change that it has decided.
func (p *Periods) CarryOut(ctx context.Context, change plan.Change) error {
	_, err := p.c.carryOut(ctx, []control.Decision{{Change: change}})
	return err
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
