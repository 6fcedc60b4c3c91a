package sim

import (
	"context"
	"fmt"

	"gonum.org/v1/plot"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/sim/vbft"
)

// cgLine is a line of fig11 as JSON.
type cgLine struct {
	simParameters
	Order      int     `json:"order"`
	Iterations int     `json:"iterations"`
	ComputeUS  float64 `json:"compute_us"`

	Network     string  `json:"network"`
	ElapsedS    float64 `json:"elapsed_s"`
	IterationMS float64 `json:"iteration_ms"`
	Relative    float64 `json:"relative"` // to the first line's
	Timeouts    uint64  `json:"timeouts"`
	Resent      uint64  `json:"resent"`
	Dropped     uint64  `json:"dropped"`
	Flooded     uint64  `json:"flooded"`
}

func (s *vbftVerb) runCG(ctx context.Context, lines *cli.Lines) (drawing, error) {
	cases, err := vbft.Cases(s.net)
	if err != nil {
		return nil, err
	}
	var all []cgLine
	for _, c := range cases {
		line, err := s.runCase(ctx, c)
		if err != nil {
			return nil, err
		}
		all = append(all, line)
		l := &all[len(all)-1]
		l.Relative = all[0].ElapsedS / l.ElapsedS
		text := fmt.Sprintf("%-10s %14.1f %9.3f %9d %9d  %s\n",
			l.Network, l.IterationMS, l.Relative, l.Timeouts, l.Dropped, bar(l.Relative, 1, 50))
		if err := lines.Write(l, s.cgHead(), text); err != nil {
			return nil, err
		}
	}
	return func() (*plot.Plot, error) { return plotCG(all) }, nil
}

func (s *vbftVerb) cgHead() string {
	return fmt.Sprintf("# VFREC-Net, figure 11: NPB CG class B on %d nodes, %d iterations, %v for each computation\n",
		len(s.net.Hosts), s.iterations, s.compute) + s.conditions() +
		fmt.Sprintf("%-10s %14s %9s %9s %9s\n", "# Network", "Iteration (ms)", "Relative", "Timeouts", "Dropped")
}

// runCase runs the program on one network.
func (s *vbftVerb) runCase(ctx context.Context, c vbft.Case) (cgLine, error) {
	config := s.network()
	config.Topology = c.Topology
	cg := vbft.CG{
		Network: config, Plan: c.Plan, Reroute: c.Reroute,
		Order: vbft.ClassBOrder, Iterations: s.iterations, Compute: s.compute,
	}
	r, err := cg.Run(ctx.Err)
	if err != nil {
		return cgLine{}, err
	}
	return cgLine{
		simParameters: s.parameters(), Order: cg.Order, Iterations: s.iterations, ComputeUS: cli.Micros(s.compute),
		Network: c.Name, ElapsedS: r.Elapsed.Seconds(),
		IterationMS: r.Elapsed.Seconds() * 1e3 / float64(s.iterations),
		Timeouts:    r.Flows.Timeouts, Resent: r.Flows.Retransmitted,
		Dropped: r.Network.Dropped, Flooded: r.Network.Flooded,
	}, nil
}
