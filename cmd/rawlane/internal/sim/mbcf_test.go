package sim

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/sim/mbcf"
)

// A line is a message's size of an experiment, as text, JSON or comma-separated values; a seed is
// that of half duplex alone.
func TestSimMBCF_Formats(t *testing.T) {
	lines := simLines[mbcfLine](t, "mbcf", "--seed", "3")
	model, k := mbcf.Fitted(), 0
	for _, e := range mbcf.Experiments() {
		for _, r := range e.Run(&model, 3) {
			want := mbcfLine{
				Schema: 1, Bench: "sim", Experiment: e.Title, Source: e.Source, Seed: 3, Unit: e.Unit, SizeBytes: r.Bytes,
				Paper: r.Paper, Model: r.Model, DeviationPct: 100 * r.Deviation(), TolerancePct: 100 * e.Tolerance,
				Input: r.Input,
			}
			if k >= len(lines) || lines[k] != want {
				t.Fatalf("line %d is not %+v", k, want)
			}
			k++
		}
	}
	if k != len(lines) {
		t.Errorf("%d lines, want %d", len(lines), k)
	}
	out, errs, status := command(t, "sim", "mbcf", "--csv")
	if status != cli.ExitDone || errs != "" || strings.Count(out, "\n") != 1+len(lines) ||
		!strings.HasPrefix(out, "schema,bench,experiment,source,seed,unit,size_bytes,paper,model,") {
		t.Errorf("status %d, said %s, printed %s", status, errs, out)
	}
}
