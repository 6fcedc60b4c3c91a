package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/sim/mcd"
)

// mcdVerb runs the barriers of MCD.
type mcdVerb struct {
	algorithms []string // instead of the paper's
	nodes      []int
	seed       uint64
	formats    cli.Formats
}

// maxMCDNodes bounds what is computed: a time with a hub of 64 stations takes about a second.
const maxMCDNodes = 64

func newMCDCommand() *cobra.Command {
	s := &mcdVerb{nodes: []int{2, 4, 8, 16, 32}}
	cmd := &cobra.Command{
		Use:   "mcd [flags]",
		Short: "Figures 5 to 10 of MCD: barriers of 32 hosts with a switch, and with a hub",
		Long: `Computes what the paper measured of barriers on 32 hosts of 1999, message by message: hosts that are
interrupted by what arrives, and a switch, or a hub where stations collide. Beside each number that
the paper's text has are the paper's, and how far the model is from it.

With --algo it computes other algorithms on the same cluster, with a switch and with a hub.

Three of the hosts' costs were fitted to the numbers with switches, and none to those with the hub.
docs/papers/mcd.md says which.

  rawlane sim mcd
  rawlane sim mcd --algo tree:3,tree:4 --nodes 9,16,27`,
		Args: cli.NoArguments,
		RunE: s.run,
	}
	f := cmd.Flags()
	cli.AlgorithmsFlag(cmd, &s.algorithms, "algo", "algorithms instead of the paper's figures, separated by commas")
	cli.ListFlag(f, &s.nodes, "nodes", "N,...", "hosts, for --algo", func(field string) (int, error) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 2 || n > maxMCDNodes {
			return 0, fmt.Errorf("%q hosts (want 2 to %d)", field, maxMCDNodes)
		}
		return n, nil
	})
	f.Uint64Var(&s.seed, "seed", 1, "of what is left to chance: how long stations wait that have collided")
	s.formats.Register(f)
	return cmd
}

// mcdLine is a line as JSON.
type mcdLine struct {
	Schema       int     `json:"schema"`
	Bench        string  `json:"bench"`
	Experiment   string  `json:"experiment"`
	Source       string  `json:"source"`
	Seed         uint64  `json:"seed"`
	Algo         string  `json:"algo"`
	Nodes        int     `json:"nodes"`
	Network      string  `json:"network"`
	Paper        float64 `json:"paper_us"`
	Model        float64 `json:"model_us"`
	DeviationPct float64 `json:"deviation_percent"`
	TolerancePct float64 `json:"tolerance_percent"`
}

func (s *mcdVerb) run(cmd *cobra.Command, _ []string) error {
	if err := s.formats.Validate(); err != nil {
		return err
	}
	if cmd.Flags().Changed("nodes") && s.algorithms == nil {
		return cli.Misuse("--nodes without --algo: the figures have hosts of their own")
	}
	lines := &cli.Lines{Out: cmd.OutOrStdout(), JSON: s.formats.JSON, CSV: s.formats.CSV}
	model := mcd.Fitted()
	for i, figure := range s.figures() {
		head := title(figure)
		if i > 0 {
			head = "\n" + head
		}
		for _, p := range figure.Points {
			line := s.line(figure, p, p.Run(&model, s.seed))
			if err := lines.Write(line, head, line.text()); err != nil {
				return err
			}
		}
	}
	return nil
}

// title is what stands above a figure's lines.
func title(f mcd.Figure) string {
	title := f.Title + ", us"
	if f.Number > 0 {
		title = fmt.Sprintf("Figure %d: %s (MCD %s; the model is to be within %.0f %%)",
			f.Number, title, f.Source, 100*mcd.Tolerance)
	}
	return fmt.Sprintf("# %s\n%-22s %6s %-7s %10s %10s %10s\n",
		title, "# Algorithm", "Hosts", "Network", "the paper", "the model", "deviation")
}

// figures returns the paper's, or those of --algo.
func (s *mcdVerb) figures() (all []mcd.Figure) {
	if s.algorithms == nil {
		return mcd.Figures()
	}
	for _, name := range s.algorithms {
		a, _ := schedule.Parse(name) // the flag has checked it
		figure := mcd.Figure{Title: name}
		for _, hub := range []bool{false, true} {
			for _, n := range s.nodes {
				figure.Points = append(figure.Points, mcd.Point{Algorithm: a, Ranks: n, Hub: hub})
			}
		}
		all = append(all, figure)
	}
	return all
}

func (s *mcdVerb) line(f mcd.Figure, p mcd.Point, model time.Duration) mcdLine {
	l := mcdLine{
		Schema: simSchema, Bench: "sim", Experiment: "algo", Source: f.Source, Seed: s.seed,
		Algo: p.Algorithm.String(), Nodes: p.Ranks, Network: "switch",
		Paper: cli.Micros(p.Paper), Model: cli.Micros(model),
		DeviationPct: 100 * p.Deviation(model), TolerancePct: 100 * mcd.Tolerance,
	}
	if f.Number > 0 {
		l.Experiment = fmt.Sprintf("fig%d", f.Number)
	}
	if p.Hub {
		l.Network = "hub"
	}
	return l
}

// text is the line for people.
func (l mcdLine) text() string {
	paper, deviation := "", ""
	if l.Paper > 0 {
		paper, deviation = fmt.Sprintf("%.0f", l.Paper), fmt.Sprintf("%+.1f %%", l.DeviationPct)
	}
	text := fmt.Sprintf("%-22s %6d %-7s %10s %10.1f %10s", l.Algo, l.Nodes, l.Network, paper, l.Model, deviation)
	return strings.TrimRight(text, " ") + "\n"
}
