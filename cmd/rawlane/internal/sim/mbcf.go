package sim

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/sim/mbcf"
)

// mbcfVerb runs the model of MPI/MBCF.
type mbcfVerb struct {
	seed    uint64
	formats cli.Formats
}

func newMBCFCommand() *cobra.Command {
	s := new(mbcfVerb)
	cmd := &cobra.Command{
		Use:   "mbcf [flags]",
		Short: "Tables 1 and 2 of MPI/MBCF: round trips and streams at 100 Mb/s",
		Long: `Computes what the paper measured between two workstations of 1998, frame by frame: round trips
through a switch (table 1), and streams one way through a switch, in full duplex, or through a hub,
in half duplex, where acknowledgements and data collide (table 2); and those of MBCF itself. Beside
each number are the paper's, and how far the model is from it.

What hosts cost was fitted to these tables; the wire and its collisions are the standard's. Where
the paper's number is an input of the model, the row says so: it tests nothing.
docs/papers/mbcf.md says which is which.

  rawlane sim mbcf
  rawlane sim mbcf --seed 2 --csv`,
		Args: cli.NoArguments,
		RunE: s.run,
	}
	f := cmd.Flags()
	f.Uint64Var(&s.seed, "seed", 1, "of what is left to chance: how long stations wait that have collided")
	s.formats.Register(f)
	return cmd
}

// mbcfLine is a line as JSON.
type mbcfLine struct {
	Schema       int     `json:"schema"`
	Bench        string  `json:"bench"`
	Experiment   string  `json:"experiment"`
	Source       string  `json:"source"`
	Seed         uint64  `json:"seed"`
	Unit         string  `json:"unit"`
	SizeBytes    int     `json:"size_bytes"`
	Paper        float64 `json:"paper"`
	Model        float64 `json:"model"`
	DeviationPct float64 `json:"deviation_percent"`
	TolerancePct float64 `json:"tolerance_percent"`
	Input        bool    `json:"input"`
}

func (s *mbcfVerb) run(cmd *cobra.Command, _ []string) error {
	if err := s.formats.Validate(); err != nil {
		return err
	}
	lines := &cli.Lines{Out: cmd.OutOrStdout(), JSON: s.formats.JSON, CSV: s.formats.CSV}
	model := mbcf.Fitted()
	for i, e := range mbcf.Experiments() {
		head := fmt.Sprintf("# %s, %s (MBCF %s; the model is to be within %.0f %%)\n%-10s %12s %12s %12s\n",
			e.Title, e.Unit, e.Source, 100*e.Tolerance, "# Bytes", "the paper", "the model", "deviation")
		if i > 0 {
			head = "\n" + head
		}
		for _, r := range e.Run(&model, s.seed) {
			line := mbcfLine{
				Schema: simSchema, Bench: "sim", Experiment: e.Title, Source: e.Source, Seed: s.seed, Unit: e.Unit,
				SizeBytes: r.Bytes, Paper: r.Paper, Model: r.Model,
				DeviationPct: 100 * r.Deviation(), TolerancePct: 100 * e.Tolerance, Input: r.Input,
			}
			text := fmt.Sprintf("%-10d %12.2f %12.2f %+10.1f %%", r.Bytes, r.Paper, r.Model, line.DeviationPct)
			if r.Input {
				text += "  (an input: no test)"
			}
			text += "\n"
			if err := lines.Write(line, head, text); err != nil {
				return err
			}
		}
	}
	return nil
}
