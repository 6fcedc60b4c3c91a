package bench

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
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

// A size that is given twice is one, and smaller ones are first, as in the table.
func TestTuner_Sizes(t *testing.T) {
	if got := (&tuner{ranks: []int{4, 2, 4, 2}}).sizes(8); !slices.Equal(got, []int{2, 4}) {
		t.Errorf("%v", got)
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

// inTurns are groups of nodes of several hosts, dealt in turn: the best by the model is a hierarchy that
// no file can name.
func inTurns(size, hosts int) (s schedule.Shape) {
	for range hosts {
		s.Hosts = append(s.Hosts, schedule.Host{Cores: 2, Local: schedule.KernelCosts})
	}
	for rank := range size {
		s.Of = append(s.Of, rank%hosts)
	}
	return s
}

// tune has a group choose whose algorithms take so long as is said.
func tune(t *testing.T, g *tunedGroup, cost func(schedule.Algorithm) time.Duration) (table *schedule.Table, printed string) {
	t.Helper()
	var out strings.Builder
	g.tuner, g.n = &tuner{rounds: 1}, &node{lines: cli.Lines{Out: &out}}
	var means []uint64
	for _, a := range g.algorithms {
		means = append(means, uint64(cost(a)))
	}
	part, err := binary.Append(nil, binary.BigEndian, means)
	if err != nil {
		t.Fatal(err)
	}
	table = &schedule.Table{}
	if err := g.choose(slices.Repeat([][]byte{part}, g.ranks), table); err != nil {
		t.Fatal(err)
	}
	return table, out.String()
}

// Where a cluster is as the model has it, a table makes no group slower than none does: also not where
// what the model chooses cannot be written.
func TestTunedGroup_TableIsNoWorseThanNone(t *testing.T) {
	unwritten := 0
	for _, c := range []struct{ size, hosts int }{{8, 1}, {8, 2}, {12, 3}, {40, 2}, {40, 4}, {60, 3}} {
		shape := inTurns(c.size, c.hosts)
		g := &tunedGroup{ranks: c.size}
		g.consider(shape)
		table, _ := tune(t, g, shape.Cost)
		with, without := shape.Cost(table.Choose(shape, c.size)), shape.Cost(shape.Choose(c.size))
		if with > without {
			t.Errorf("%v: %v takes %v, and %v without a table", shape, table.Choose(shape, c.size), with, without)
		}
		if len(table.Rows()) == 0 {
			unwritten++
		}
	}
	if unwritten == 0 {
		t.Error("all that the model chooses can be written")
	}
}

// What the model chooses is measured whether or not it can be written, and gives way to what is
// quicker. What is quickest, is not its choice and cannot be written counts as if it were not there.
func TestTunedGroup_Best(t *testing.T) {
	shape := inTurns(40, 4)
	g := &tunedGroup{ranks: 40}
	g.consider(shape)
	model := g.algorithms[0].String()
	other := slices.IndexFunc(g.algorithms[1:], func(a schedule.Algorithm) bool { return strings.HasPrefix(a.String(), "hosts:") })
	if !strings.HasPrefix(model, "hosts:") || other < 0 {
		t.Fatalf("the candidates are %v", g.algorithms)
	}
	for _, c := range []struct {
		what           string
		model, shuffle int // us; all others take 100, and another hierarchy 10
		want           string
	}{
		{"the model's choice is the quickest that is one", 20, 50, ""},
		{"a quicker one can be written", 50, 20, "shuffle"},
	} {
		table, printed := tune(t, g, func(a schedule.Algorithm) time.Duration {
			us := 100
			switch a.String() {
			case model:
				us = c.model
			case "shuffle":
				us = c.shuffle
			case g.algorithms[1+other].String():
				us = 10
			}
			return time.Duration(us) * time.Microsecond
		})
		got := ""
		if rows := table.Rows(); len(rows) > 0 {
			got = rows[0].Algorithm.String()
		}
		if got != c.want || strings.Count(printed, "the best:") != 1 ||
			strings.Contains(printed, "(the model's choice: no row)") != (got == "") {
			t.Errorf("%s: the row has %q, want %q:\n%s", c.what, got, c.want, printed)
		}
		if !strings.Contains(printed, model) {
			t.Errorf("%s: %s was not measured", c.what, model)
		}
	}
}

// With nothing to measure there is no row, and nothing is printed.
func TestTunedGroup_WithoutAlgorithms(t *testing.T) {
	table, printed := tune(t, &tunedGroup{ranks: 96}, nil)
	if len(table.Rows()) != 0 || printed != "" {
		t.Errorf("%v, %q", table.Rows(), printed)
	}
}
