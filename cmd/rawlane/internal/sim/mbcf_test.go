package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/sim/mbcf"
)

// What docs/papers/mbcf.md shows of the model is what the command prints.
func TestSimMBCF_IsThatOfTheDocumentation(t *testing.T) {
	out, errs, status := command(t, "sim", "mbcf")
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d, said %s", status, errs)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "papers", "mbcf.md"))
	if err != nil || !strings.Contains(string(page), "```\nrawlane sim mbcf\n```\n\n```\n"+out+"```\n") {
		t.Errorf("%v: docs/papers/mbcf.md does not show\n%s", err, out)
	}
}

// A line is a message's size of an experiment, as text, JSON or comma-separated values; a seed is
// that of half duplex alone.
func TestSimMBCF_Formats(t *testing.T) {
	lines := jsonLines[mbcfLine](t, "sim", "mbcf", "--json", "--seed", "3")
	model, k := mbcf.Fitted(), 0
	for _, e := range mbcf.Experiments() {
		for _, r := range e.Run(&model, 3) {
			want := mbcfLine{
				Schema: 1, Bench: "sim", Experiment: e.Title, Source: e.Source, Seed: 3, Unit: e.Unit, SizeBytes: r.Bytes,
				Paper: r.Paper, Model: r.Model, DeviationPct: 100 * r.Deviation(), TolerancePct: 100 * e.Tolerance,
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
