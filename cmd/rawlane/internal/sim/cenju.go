package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/sim/cenju"
)

// cenjuVerb runs the experiments of Cenju-3.
type cenjuVerb struct {
	experiment string // or all
	config     cenju.Config
	sizes      []int
	formats    cli.Formats
	plot       string

	curves []cenjuLine // what the plot shows
}

// cenjuExperiments are the experiments, in the order in which they run.
var cenjuExperiments = []struct {
	name string
	run  func(*cenjuVerb, *cli.Lines) error
}{
	{"throughput", (*cenjuVerb).throughput},
	{"sweep", (*cenjuVerb).sweep},
	{"latency", (*cenjuVerb).latency},
}

func newCenjuCommand() *cobra.Command {
	s := &cenjuVerb{
		config: cenju.Paper(),
		sizes:  []int{512, 1 << 10, 2 << 10, 4 << 10, 6 << 10, 8 << 10, 16 << 10, 64 << 10, 128 << 10},
	}
	cmd := &cobra.Command{
		Use:   "cenju [flags]",
		Short: "The transfer model of Cenju-3: what limits a remote write",
		Long: `Moves transfers packet by packet through a network, a FIFO and a receiver whose processor invalidates
its cache by software, and prints how fast they go, beside the closed form of the same and what the
paper says. docs/papers/cenju.md says what is modelled, and which parameters are measured, fitted or
derived.

throughput: the receiver stands still while its processor invalidates (not-pipelined), takes the
next transfer in meanwhile (pipelined), or does both, as the system's own remote write: in pieces
(remote-write), or whatever the length (remote-write-uncut).
sweep: the first of these, with one parameter changed at a time.
latency: the parts of the paper's latencies, added up. They are its measurements, not simulated.

  rawlane sim cenju
  rawlane sim cenju --experiment throughput --size 1k:64k --fifo 4096 --plot throughput.svg
  rawlane sim cenju --experiment sweep --csv`,
		Args: cli.NoArguments,
		RunE: s.run,
	}
	f := cmd.Flags()
	f.StringVar(&s.experiment, "experiment", "", "throughput, sweep or latency (default: all)")
	cli.Choice(cmd, "experiment", "throughput", "sweep", "latency")
	rate := func(to *cenju.Rate, name, usage string) { f.Float64Var((*float64)(to), name, float64(*to), usage) }
	rate(&s.config.Network, "network", "MB/s of the network: measured")
	rate(&s.config.Receiver, "receiver", "MB/s from the FIFO to memory: fitted")
	rate(&s.config.Invalidation, "invalidation", "MB/s that a processor invalidates: fitted")
	f.DurationVar(&s.config.Delay, "delay", s.config.Delay, "from the last byte in memory to the invalidation: fitted")
	f.IntVar(&s.config.Packet, "packet", s.config.Packet, "bytes of a packet")
	f.IntVar(&s.config.FIFO, "fifo", s.config.FIFO, "bytes of the FIFO between network and receiver: derived")
	f.IntVar(&s.config.Piece, "piece", s.config.Piece, "bytes that a remote write invalidates at a time")
	cli.SizesFlag(f, &s.sizes, "size", "s", "bytes of a transfer")
	s.formats.Register(f)
	f.Lookup("csv").Usage += ", of one experiment"
	f.StringVar(&s.plot, "plot", "", "draw throughput into this SVG file")
	return cmd
}

func (s *cenjuVerb) run(cmd *cobra.Command, _ []string) error {
	if err := s.validate(); err != nil {
		return err
	}
	lines := &cli.Lines{Out: cmd.OutOrStdout(), JSON: s.formats.JSON, CSV: s.formats.CSV}
	for _, e := range cenjuExperiments {
		if s.experiment != "" && s.experiment != e.name {
			continue
		}
		if err := e.run(s, lines); err != nil {
			return err
		}
	}
	if s.plot == "" {
		return nil
	}
	return cli.SavePlot(s.plot, func() (*plot.Plot, error) { return plotCenju(s.curves) })
}

func (s *cenjuVerb) validate() error {
	var names []string
	known := s.experiment == ""
	for _, e := range cenjuExperiments {
		names = append(names, e.name)
		known = known || s.experiment == e.name
	}
	if !known {
		return cli.NotOneOf("experiment", s.experiment, names...)
	}
	if err := s.formats.Validate(); err != nil {
		return err
	}
	switch {
	case s.formats.CSV && s.experiment == "":
		return cli.Misuse("--csv: of which --experiment? (one of %s)", strings.Join(names, ", "))
	case s.plot != "" && s.experiment != "" && s.experiment != "throughput":
		return cli.Misuse("--plot is for throughput")
	}
	for _, size := range s.sizes {
		if size < cenju.MinPacket || size > cenju.MaxSize {
			return cli.Misuse("--size %d: want %d to %d", size, cenju.MinPacket, cenju.MaxSize)
		}
	}
	if err := s.config.Validate(); err != nil {
		return cli.AsMisuse(err)
	}
	return cli.CheckFile("plot", s.plot)
}

// cenjuParameters are in each line.
type cenjuParameters struct {
	Schema       int         `json:"schema"`
	Bench        string      `json:"bench"`
	Experiment   string      `json:"experiment"`
	Network      float64     `json:"network_mb_per_s"`
	Receiver     float64     `json:"receiver_mb_per_s"`
	Invalidation float64     `json:"invalidation_mb_per_s"`
	DelayUS      float64     `json:"delay_us"`
	PacketBytes  int         `json:"packet_bytes"`
	FIFOBytes    int         `json:"fifo_bytes"`
	PieceBytes   int         `json:"piece_bytes"`
	Host         launch.Host `json:"host"`
}

func cenjuParametersOf(experiment string, c cenju.Config) cenjuParameters {
	return cenjuParameters{
		Schema: simSchema, Bench: "sim", Experiment: experiment,
		Network: float64(c.Network), Receiver: float64(c.Receiver), Invalidation: float64(c.Invalidation),
		DelayUS: cli.Micros(c.Delay), PacketBytes: c.Packet, FIFOBytes: c.FIFO, PieceBytes: c.Piece,
		Host: launch.ThisHost("", c.Packet),
	}
}

func (s *cenjuVerb) conditions() string {
	c := s.config
	return fmt.Sprintf("# network %g MB/s, receiver %g, invalidation %g, delay %v; ",
		c.Network, c.Receiver, c.Invalidation, c.Delay) +
		fmt.Sprintf("packets of %d bytes, FIFO %d, pieces %d\n", c.Packet, c.FIFO, c.Piece)
}

// cenjuLine is a line of throughput as JSON.
type cenjuLine struct {
	cenjuParameters
	Mode      string  `json:"mode"`
	SizeBytes int     `json:"size_bytes"`
	CycleUS   float64 `json:"cycle_us"`
	MBPerS    float64 `json:"mb_per_s"`
	Formula   float64 `json:"formula_mb_per_s"`
	Limit     float64 `json:"limit_mb_per_s"`
}

// claim is what the paper says of a mode.
func (s *cenjuVerb) claim(m cenju.Mode) string {
	switch m {
	case cenju.NotPipelined:
		return "a peak at 6-8 KB, then down to about 31 MB/s (6.3, figure 11)"
	case cenju.Pipelined:
		return "about 36 MB/s (6.2, figure 11)"
	case cenju.RemoteWriteUncut:
		return "a peak at about 8 KB (6.3, figure 14)"
	}
	if s.config.Piece != cenju.Paper().Piece {
		return "nothing of such pieces; with 8192 bytes 34.7 MB/s from 8 KB on (6.1, figure 9)"
	}
	return "34.7 MB/s from 8 KB on (6.1, figure 9)"
}

func (s *cenjuVerb) throughput(lines *cli.Lines) error {
	form := cenjuLine{cenjuParameters: cenjuParametersOf("throughput", s.config)}
	for _, m := range cenju.Modes {
		form.Mode, form.Limit = m.String(), float64(s.config.Limit(m))
		head := fmt.Sprintf("# Cenju-3, throughput, %v; its limit is %.1f MB/s\n", m, form.Limit) +
			fmt.Sprintf("# The paper: %s\n", s.claim(m)) + s.conditions() +
			fmt.Sprintf("%-8s %9s %9s  (a # is 2 %% of the network's rate)\n", "# Bytes", "MB/s", "Formula")
		for _, size := range s.sizes {
			l, cycle := form, s.config.Simulate(m, size)
			l.SizeBytes, l.CycleUS = size, cli.Micros(cycle)
			l.MBPerS = float64(cenju.Throughput(size, cycle))
			l.Formula = float64(cenju.Throughput(size, s.config.Formula(m, size)))
			s.curves = append(s.curves, l)
			text := fmt.Sprintf("%-8d %9.1f %9.1f  %s\n", size, l.MBPerS, l.Formula, bar(l.MBPerS, l.Network, 50))
			if err := lines.Write(l, head, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepLine is a line of sweep as JSON: throughput with one parameter changed.
type sweepLine struct {
	cenjuParameters
	Parameter string    `json:"parameter"`
	Value     float64   `json:"value"`
	Unit      string    `json:"unit"`
	Sizes     []int     `json:"sizes_bytes"`
	Rates     []float64 `json:"rates_mb_per_s"`
	Formulas  []float64 `json:"formulas_mb_per_s"`
}

func (s *cenjuVerb) sweep(lines *cli.Lines) error {
	const m = cenju.NotPipelined
	head := fmt.Sprintf("# Cenju-3, figures 12 and 13: MB/s, %v, with one parameter changed\n", m) +
		"# The paper: the network moves large transfers, the receiver small ones and the peak,\n" +
		"# the invalidation all, the delay small ones (6.3). It has no sweep of the FIFO\n" +
		s.conditions() + fmt.Sprintf("%-13s %11s", "# Parameter", "Bytes:")
	for _, size := range s.sizes {
		head += fmt.Sprintf(" %6d", size)
	}
	for _, swept := range s.config.Sweeps() {
		l := sweepLine{
			cenjuParameters: cenjuParametersOf("sweep", swept.Config),
			Parameter:       swept.Parameter, Value: swept.Value, Unit: swept.Unit, Sizes: s.sizes,
		}
		text := fmt.Sprintf("%-13s %5.4g %-5s", l.Parameter, l.Value, l.Unit)
		for _, size := range s.sizes {
			rate := cenju.Throughput(size, swept.Config.Simulate(m, size))
			l.Rates = append(l.Rates, float64(rate))
			l.Formulas = append(l.Formulas, float64(cenju.Throughput(size, swept.Config.Formula(m, size))))
			text += fmt.Sprintf(" %6.1f", rate)
		}
		if err := lines.Write(l, head+"\n", text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// stepLine is a line of latency as JSON.
type stepLine struct {
	Schema     int     `json:"schema"`
	Bench      string  `json:"bench"`
	Experiment string  `json:"experiment"`
	Figure     int     `json:"figure"`
	Step       string  `json:"step"`
	TakesUS    float64 `json:"takes_us"`
	DoneUS     float64 `json:"done_us"`
}

func (s *cenjuVerb) latency(lines *cli.Lines) error {
	for _, part := range []struct {
		figure      int
		name, paper string
		steps       []cenju.Step
	}{
		{7, "hardware", "about 7 us in all, and 5 more to the interrupt (5.1)", cenju.HardwareLatency()},
		{8, "a remote write of one word", "about 33 us, of a round trip of about 65 (5.2)", cenju.UserLatency()},
	} {
		head := fmt.Sprintf("# Cenju-3, figure %d: latency, %s\n# The paper: %s\n%-50s %6s %6s\n",
			part.figure, part.name, part.paper, "# Step", "us", "Done")
		var done time.Duration
		for _, step := range part.steps {
			done += step.Takes
			l := stepLine{
				Schema: simSchema, Bench: "sim", Experiment: "latency", Figure: part.figure,
				Step: step.Name, TakesUS: cli.Micros(step.Takes), DoneUS: cli.Micros(done),
			}
			if err := lines.Write(l, head, fmt.Sprintf("%-50s %6g %6g\n", l.Step, l.TakesUS, l.DoneUS)); err != nil {
				return err
			}
		}
	}
	return nil
}
