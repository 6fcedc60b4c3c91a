package barrier

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// plan is the schedule for one size.
type plan struct {
	asked     string
	algorithm schedule.Algorithm // the choice of auto, if that was asked
	nodes     int
	networks  int // used by messages
	frames    int
	steps     [][]schedule.Step // by rank
	logp      schedule.LogP
	exits     []time.Duration // by rank, by the model
	events    []schedule.Event
	choices   []schedule.Choice // of auto, the best first
}

// plan computes the schedule. For auto in levels it may take long; ctx interrupts it.
func (s *showVerb) plan(ctx context.Context, a schedule.Algorithm) (*plan, error) {
	var p *plan
	done := make(chan error, 1)
	go func() { // until the schedule is done, or the process ends
		var err error
		p, err = s.work(a)
		done <- err
	}()
	select {
	case err := <-done:
		return p, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *showVerb) work(a schedule.Algorithm) (p *plan, err error) {
	// Levels within levels can need more labels than there are. Steps panics then.
	defer func() {
		if why := recover(); why != nil {
			err = cli.Misuse("algorithm %q cannot be had for %d ranks: %v", s.name, s.nodes, why)
		}
	}()
	p = &plan{asked: s.name, algorithm: a.For(s.nodes), nodes: s.nodes, networks: 1, logp: s.logp}
	for rank := range s.nodes {
		steps := p.algorithm.Steps(rank, s.nodes)
		for _, step := range steps {
			p.frames += len(step.Notify)
		}
		p.networks = max(p.networks, schedule.Networks(steps))
		p.steps = append(p.steps, steps)
	}
	p.exits, p.events = p.algorithm.Timeline(s.nodes, s.logp)
	if s.name == "auto" {
		p.choices = schedule.Choices(s.nodes, s.networks()...)
	}
	return p, nil
}

// name is the algorithm, and whether auto chose it.
func (p *plan) name() string {
	if p.choices != nil {
		return p.algorithm.String() + " (chosen by auto)"
	}
	return p.algorithm.String()
}

func (p *plan) predicted() time.Duration { return slices.Max(p.exits) }

// estimated reports whether the costs of what auto has considered are estimates: that of its choice
// is not what the schedule takes.
func (p *plan) estimated() bool { return p.choices[0].Cost != p.predicted() }

// title is the algorithm, the size and the cost.
func (p *plan) title() string {
	return fmt.Sprintf("%s, %s: %s, %s predicted",
		p.name(), cli.Count(p.nodes, "rank"), cli.Count(p.frames, "frame"), micros(p.predicted()))
}

func (p *plan) parameters() string {
	l := &p.logp
	return fmt.Sprintf("os %s, L %s, or %s, gap %s", micros(l.Os), micros(l.L), micros(l.Or), micros(l.Gap))
}

func (p *plan) exitTimes() string {
	return fmt.Sprintf("first exit %s, last %s", micros(slices.Min(p.exits)), micros(p.predicted()))
}

// headline is the first line of the output.
func (p *plan) headline() string {
	return fmt.Sprintf("%s (%s); %s", p.title(), p.parameters(), p.exitTimes())
}
