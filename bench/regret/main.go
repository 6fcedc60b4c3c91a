//go:build linux

// Command regret answers: how much slower is the barrier of a group whose config is empty than that
// of the best algorithm? On each link all candidates and the group's own choice take turns; regret
// is the choice's median over the least one, less 1. With -tuned the choice is by a table that
// rawlane tune has measured just before.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
)

var (
	list  = flag.String("nodes", "2,3,4,8,16,32", "numbers of nodes")
	links = flag.String("links", "ring,fabric,shm", "kinds of links")
	tuned = flag.Bool("tuned", false, "the group chooses by what rawlane tune measures before, not by the model")
)

func main() {
	b := harness.Bench{Name: "regret", Link: "nodes of this machine: goroutines on the fabric, else processes",
		Rounds: 5, Iters: 1000, MinIters: 1, Run: run}
	b.Main()
}

const (
	// timeout bounds what rawlane tune takes.
	timeout = 5 * time.Minute
	// auto is what a group chooses whose config is empty.
	auto = "auto"
	// limit of the choice's median over the least.
	limit = 1.10
)

// algorithms are what is considered for one host, and the choice.
var algorithms = []string{
	"shuffle", "concurrent", "tree:2", "tree:3", "tree:4", "tree:6", "tree:8", "tree:12", "tree:16",
	"treetree:2", "treetree:4", "star", auto,
}

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	nodes, err := harness.ParseNodes(*list, testbed.MaxNodes)
	if err != nil {
		return r, err
	}
	if b.Rows {
		return harness.RowsOf([]harness.Variant{{Rows: algorithms}}), nil
	}
	if err := testbed.Reexec(); err != nil {
		return r, err
	}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	kinds := strings.Split(*links, ",")
	if err := b.Programs.CheckLinks(ctx, "links", kinds...); err != nil {
		return r, err
	}
	for _, link := range kinds {
		for _, n := range nodes {
			t := newTable(link, n, b.Rounds)
			if *tuned {
				if err := t.tune(ctx, &b.Programs, b.Dir); err != nil {
					return r, err
				}
			}
			err := b.RunRounds(ctx, []harness.Variant{{Name: t.Title, Run: func(ctx context.Context) error {
				return t.measure(ctx, &b.Programs, b.Iters)
			}}})
			if err != nil {
				return r, err
			}
			r.Tables = append(r.Tables, &t.Table)
			r.Targets = append(r.Targets, t.target())
		}
	}
	return r, nil
}

// table is the mean times of the algorithms on one link, in us.
type table struct {
	harness.Table
	link   string
	nodes  int
	round  int    // begun so far
	chosen string // by the group
	tuned  string // the file by which it chooses; "": by the model
}

func newTable(link string, nodes, rounds int) *table {
	t := &table{link: link, nodes: nodes}
	t.Table = harness.Table{
		Title: fmt.Sprintf("Barrier among %d nodes on %s, us; median of %d rounds\n%-22s %9s %21s",
			nodes, link, rounds, "", "mean", "means of the rounds"),
		Text: func(r *harness.Row) string {
			name := r.Name
			if name == auto {
				name += " = " + t.chosen
			}
			return fmt.Sprintf("%-22s %9.2f %9.2f - %9.2f", name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			line := map[string]any{"name": r.Name, "link": link, "nodes": nodes, "mean_us": r.Median(),
				"rounds": r.Rounds(), "lowest_mean_us": r.Min(), "highest_mean_us": r.Max()}
			if r.Name == auto {
				line["chosen"] = t.chosen
			}
			return line
		},
		Ratios: []harness.Ratio{{Head: "/ best", Key: "ratio_to_best", To: t.best}},
		Width:  9,
	}
	return t
}

// tune has the quickest algorithm measured and written into a file, of this size.
func (t *table) tune(ctx context.Context, programs *harness.Programs, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t.tuned = filepath.Join(dir, fmt.Sprintf("%s.%d.table", t.link, t.nodes))
	cmd := programs.Command(ctx, "tune", "--link", t.link, "--nodes", strconv.Itoa(t.nodes),
		"--ranks", strconv.Itoa(t.nodes), "--out", t.tuned)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}

// candidates are the algorithms that differ for so many nodes, and the choice. Each is the first
// once, so that events at one moment of each run do not always meet the same one.
func (t *table) candidates() []string {
	all := slices.DeleteFunc(slices.Clone(algorithms), func(name string) bool {
		_, word, tree := strings.Cut(name, "tree:")
		k, _ := strconv.Atoi(word) // ours
		return tree && k > 2 && k >= t.nodes
	})
	first := t.round % len(all)
	return slices.Concat(all[first:], all[:first])
}

// measure is a round of all algorithms.
func (t *table) measure(ctx context.Context, programs *harness.Programs, iters int) error {
	type line struct {
		Algo   string  `json:"algo"`
		Chosen string  `json:"chosen"`
		Loop   string  `json:"loop"`
		Mean   float64 `json:"mean_us"`
	}
	args := []string{"barrier", "--work", "0s", "--link", t.link, "--algo", strings.Join(t.candidates(), ","),
		"--nodes", strconv.Itoa(t.nodes), "--iters", strconv.Itoa(iters)}
	if t.tuned != "" {
		args = append(args, "--table", t.tuned)
	}
	lines, err := harness.Lines[line](ctx, programs, args...)
	t.round++
	for _, l := range lines {
		if l.Loop == "tight" {
			t.Add(l.Algo, l.Mean)
		}
		if l.Algo == auto {
			t.chosen = l.Chosen
		}
	}
	return err
}

// best returns the quickest of the algorithms.
func (t *table) best() *harness.Row {
	return slices.MinFunc(t.Rows, func(a, b *harness.Row) int {
		if a.Median() < b.Median() {
			return -1
		}
		return 1
	})
}

func (t *table) target() harness.Target {
	best := t.best()
	got := t.Find(auto).Over(best)
	return harness.Target{
		What: fmt.Sprintf("%-6s %2d nodes: auto at most %.2f x the best", t.link, t.nodes, limit),
		Got:  got, Limit: limit,
		Note: fmt.Sprintf("%s, best %s, regret %.0f %%, ", t.chosen, best.Name, 100*(got-1)),
	}
}
