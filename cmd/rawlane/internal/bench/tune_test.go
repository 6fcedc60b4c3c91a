package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
)

// A file that node 0 could not write is told before there are processes, which would wait for it.
func TestTuner_ChecksTheFileAtOnce(t *testing.T) {
	tune := &tuner{rounds: 1, out: filepath.Join(t.TempDir(), "none", "x")}
	tune.cluster.Nodes, tune.cluster.Node = 2, launch.NoNode
	if err := tune.prepare(nil); err == nil {
		t.Error("no error")
	}
	tune.cluster.Node = 0
	if err := tune.prepare(nil); err == nil {
		t.Error("no error where this is node 0 of several machines")
	}
	tune.cluster.Node = 1 // which writes nothing
	if err := tune.prepare(nil); err != nil {
		t.Error(err)
	}
}

// The values of "bench" in docs/bench-json.md are all benchmarks, and tune.
func TestBenchmarksAreDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(doc), "\n| `bench` |")
	row, _, _ = strings.Cut(row, "\n")
	for _, verb := range append(NewCommand().Commands(), NewTuneCommand()) {
		if !strings.Contains(row, "`"+verb.Name()+"`") {
			t.Errorf("%s is not among the values of bench", verb.Name())
		}
	}
}
