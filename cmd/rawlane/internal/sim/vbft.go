// Package sim is the verbs that run experiments in virtual time: the reproductions of papers.
package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/sim/vbft"
	"github.com/rawlane/rawlane/vlan/topology"
)

// vbftVerb runs an experiment of VFREC-Net.
type vbftVerb struct {
	experiment string
	topology   string
	rate       string // of all cables; empty: the topology's own
	queue      int
	window     int
	congestion string
	seed       uint64
	json       bool
	plot       string

	seconds float64 // fig9
	barrier bool

	iterations int // fig11
	compute    time.Duration

	net *topology.Topology
}

// NewCommand returns the verb sim.
func NewCommand() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "sim VERB",
		Short: "Run experiments on networks that are not there, in virtual time",
	}, "which?", newVBFTCommand(), newMCDCommand(), newMBCFCommand(), newCenjuCommand())
}

// simExperiments are the experiments, with the flags of each alone. run prints the results, and
// returns what draws them.
var simExperiments = map[string]struct {
	run   func(*vbftVerb, context.Context, *cli.Lines) (drawing, error)
	flags []string
}{
	"fig9":  {(*vbftVerb).runChange, []string{"seconds", "barrier"}},
	"fig11": {(*vbftVerb).runCG, []string{"iterations", "compute"}},
}

const (
	maxSimSeconds    = 1800 // ether.MaxTime holds twice as many
	maxSimIterations = 1000
)

func newVBFTCommand() *cobra.Command {
	s := new(vbftVerb)
	cmd := &cobra.Command{
		Use:   "vbft --experiment fig9|fig11 [flags]",
		Short: "The experiments of VFREC-Net: routes that change, and routes that collide",
		Long: `Runs the paper's experiments frame by frame, on simulated switches that learn and flood as real
ones, cables with rates, and hosts that send as TCP does. docs/simulation.md says what is modelled,
and what came out.

fig9: each node of the lower half sends to its counterpart in the upper half, all on the first VID.
After a third of the time node 0 alone changes its pair to the second VID: its frames flood. After
two thirds its counterpart follows. With --barrier both change after a third.

fig11: the messages of NPB CG class B, a process on each node: on one switch (flat), on the first VID
alone (tree), with the plan to begin with (default), with the plan that 'rawlane route optimise'
finds (optimised), and with the first plan changed into the second in each iteration (rerouted). The
result is how fast each is, relative to flat.

  rawlane sim vbft --experiment fig9
  rawlane sim vbft --experiment fig9 --seconds 6 --plot fig9.svg
  rawlane sim vbft --experiment fig11 --json`,
		Args: cli.NoArguments,
		RunE: s.run,
	}
	f := cmd.Flags()
	f.StringVar(&s.experiment, "experiment", "", "fig9 or fig11")
	f.StringVar(&s.topology, "topology", "vbft:4x4x4", cli.TopologyHelp)
	f.StringVar(&s.rate, "rate", "", "of all cables, such as 100M or 10G (default: the topology's own)")
	f.IntVar(&s.queue, "queue", ether.DefaultQueue, "bytes that may wait at a switch's port")
	f.IntVar(&s.window, "window", ether.DefaultWindow, "bytes that a host sends before it hears of some")
	f.StringVar(&s.congestion, "congestion", ether.NewReno.String(), "of all hosts: newreno or cubic")
	cli.Choice(cmd, "congestion", congestions()...)
	f.Uint64Var(&s.seed, "seed", 1, "of what is left to chance")
	f.Float64Var(&s.seconds, "seconds", 60, "fig9: how long it runs, in virtual time")
	f.BoolVar(&s.barrier, "barrier", false, "fig9: both ends of the pair change together")
	f.IntVar(&s.iterations, "iterations", 25, "fig11: iterations that are timed (class B has 75)")
	f.DurationVar(&s.compute, "compute", vbft.DefaultCompute, "fig11: computation before each exchange of vectors")
	f.BoolVar(&s.json, "json", false, "print JSON, an object per line")
	cli.Choice(cmd, "experiment", "fig9", "fig11")
	f.StringVar(&s.plot, "plot", "", "draw the result into this SVG file")
	return cmd
}

func (s *vbftVerb) run(cmd *cobra.Command, _ []string) error {
	if err := s.validate(cmd); err != nil {
		return err
	}
	lines := &cli.Lines{Out: cmd.OutOrStdout(), JSON: s.json}
	draw, err := simExperiments[s.experiment].run(s, cmd.Context(), lines)
	if err != nil || s.plot == "" {
		return err
	}
	return cli.SavePlot(s.plot, draw)
}

func (s *vbftVerb) validate(cmd *cobra.Command) error {
	if _, known := simExperiments[s.experiment]; !known {
		return cli.NotOneOf("experiment", s.experiment, "fig9", "fig11")
	}
	for name, e := range simExperiments {
		for _, flag := range e.flags {
			if name != s.experiment && cmd.Flags().Changed(flag) {
				return cli.Misuse("--%s is for %s", flag, name)
			}
		}
	}
	if !slices.Contains(congestions(), s.congestion) {
		return cli.NotOneOf("congestion", s.congestion, congestions()...)
	}
	switch {
	case s.queue < ether.FullFrame || s.queue > ether.MaxQueue:
		return cli.Misuse("--queue %d: want %d, a full frame, to %d", s.queue, ether.FullFrame, ether.MaxQueue)
	case s.window < ether.Payload || s.window > ether.MaxWindow:
		return cli.Misuse("--window %d: want %d, what a frame carries, to %d", s.window, ether.Payload, ether.MaxWindow)
	case !(s.seconds >= .01 && s.seconds <= maxSimSeconds):
		return cli.Misuse("--seconds %g: want 0.01 to %d", s.seconds, maxSimSeconds)
	case s.iterations < 1 || s.iterations > maxSimIterations:
		return cli.Misuse("--iterations %d: want 1 to %d", s.iterations, maxSimIterations)
	case s.compute < 0 || s.compute > time.Second:
		return cli.Misuse("--compute %v: want 0 to %v", s.compute, time.Second)
	}
	if err := cli.CheckFile("plot", s.plot); err != nil {
		return err
	}
	return s.validateTopology()
}

func (s *vbftVerb) validateTopology() (err error) {
	if s.net, err = cli.LoadTopology(s.topology); err != nil {
		return err
	}
	if s.rate != "" {
		rate, err := topology.ParseRate(s.rate)
		if err != nil {
			return cli.Misuse("--rate: %v", err)
		}
		if rate < ether.MinRate || rate > ether.MaxRate {
			return cli.Misuse("--rate %s: want %v to %v", s.rate, ether.MinRate, ether.MaxRate)
		}
		s.net.SetRates(rate, rate)
	}
	hosts := len(s.net.Hosts)
	switch {
	case len(s.net.VLANs) < 2:
		return cli.Misuse("--topology %s: it has %d VIDs (want two at least)", s.topology, len(s.net.VLANs))
	case s.experiment == "fig9" && (hosts < 2 || hosts%2 != 0):
		return cli.Misuse("--topology %s: it has %d hosts (want an even number)", s.topology, hosts)
	case s.experiment == "fig11" && !slices.Contains(vbft.Sizes, hosts):
		return cli.Misuse("--topology %s: it has %d hosts (want one of %v)", s.topology, hosts, vbft.Sizes)
	}
	if err := s.network().Validate(); err != nil {
		return cli.Misuse("--topology %s: %v", s.topology, err)
	}
	return nil
}

func (s *vbftVerb) network() ether.Config {
	return ether.Config{
		Topology: s.net, Seed: s.seed, Queue: s.queue, Window: s.window,
		Congestion: ether.Congestion(slices.Index(congestions(), s.congestion)),
	}
}

// congestions names the congestion controls, each at its value.
func congestions() (names []string) {
	for _, c := range ether.Congestions {
		names = append(names, c.String())
	}
	return names
}

// simSchema is the version of what is printed as JSON. docs/simulation.md describes it.
const simSchema = 1

// simParameters are in each line.
type simParameters struct {
	Schema     int         `json:"schema"`
	Bench      string      `json:"bench"`
	Experiment string      `json:"experiment"`
	Topology   string      `json:"topology"`
	Nodes      int         `json:"nodes"`
	BitsPerS   float64     `json:"bits_per_s"` // of node 0's cable
	QueueBytes int         `json:"queue_bytes"`
	Window     int         `json:"window_bytes"`
	Congestion string      `json:"congestion"`
	Seed       uint64      `json:"seed"`
	Host       launch.Host `json:"host"`
}

func (s *vbftVerb) parameters() simParameters {
	return simParameters{
		Schema: simSchema, Bench: "sim", Experiment: s.experiment, Topology: s.topology, Nodes: len(s.net.Hosts),
		BitsPerS: float64(s.net.Hosts[0].Rate), QueueBytes: s.queue, Window: s.window,
		Congestion: s.congestion, Seed: s.seed,
		Host: launch.ThisHost("", ether.MTU),
	}
}

// conditions is the parameters in the head of a table.
func (s *vbftVerb) conditions() string {
	return fmt.Sprintf("# %s, hosts' cables %vbit/s, queues of %d KiB, windows of %d KiB, %s, seed %d\n",
		s.topology, s.net.Hosts[0].Rate, s.queue>>10, s.window>>10, s.congestion, s.seed)
}

// bar is a bar of a text chart; its share of the width is the share of part in the whole.
func bar(part, whole float64, width int) string {
	return strings.Repeat("#", min(int(float64(width)*part/whole+.5), width))
}
